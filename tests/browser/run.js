// Journeys through the pages in a real browser. Exits with 0 when all of them pass, and immediately
// when there is no browser.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import assert from "node:assert/strict";
import { executable, launch, signIn, watch } from "./browser.js";
import { oidc, provider, settings } from "./oidc.js";
import { servers } from "./servers.js";
import { webhooks } from "./webhooks.js";
import { further } from "./further.js";
import { HIDDEN, HOSTILE, free, world } from "./world.js";

if (!executable()) {
  console.log("no Chromium here: nothing is tested (apt-get install chromium)");
  process.exit(0);
}
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const only = process.argv[2];
const failed = [];
let count = 0;

const browser = await launch();
const errors = [];
const open = async (options = {}) => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  await watch(page, errors);
  return page;
};

const wanted = (name) => !only || only.split(",").some((it) => name.includes(it));

async function test(name, body) {
  if (!wanted(name)) return;
  count += 1;
  const started = Date.now();
  errors.length = 0;
  try {
    await body();
    assert.deepEqual(errors, [], "the page reported errors");
    console.log(`ok      ${name} (${Date.now() - started} ms)`);
  } catch (error) {
    failed.push(name);
    console.log(`FAILED  ${name}\n${error.stack ?? error}`);
  }
}

const noViolations = async (page, where) => {
  const found = await page.evaluate(async () => {
    const result = await window.axe.run(document, { resultTypes: ["violations"] });
    return result.violations.map((it) => `${it.id}: ${it.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
  });
  assert.deepEqual(found, [], where);
};
const noSideScroll = async (page, where) => {
  const [inner, outer] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
  assert.ok(inner <= outer, `${where} is ${inner} px wide in a window of ${outer} px`);
};

let one;
try {
  const port = await free();
  const identity = await provider(`http://127.0.0.1:${port}/sign-in/back`);
  process.once("exit", () => identity.stop());
  one = await world({ port, more: (folder) => settings(folder, identity.issuer) });
  const [first] = one.numbers;
  const waiting = one.numbers[4];
  const stranger = one.numbers.at(-1);
  const pages = {
    home: "/", queue: one.queue, "queue that is empty": one.quiet, "pull request under test": one.pr(first),
    "output of a running check": await one.output(first),
    "pull request that waits": one.pr(waiting), "pull request that was never submitted": one.pr(stranger),
    left: one.page("queue/left"), health: one.page("queue/health"), "the last hour": `${one.page("queue/health")}&hours=1`, graph: one.page("queue/graph"), "the small graph": `${one.page("queue/graph")}&size=small`,
    settings: one.page("queue/settings"), preview: `${one.page("queue/settings")}&concurrency=7`,
    "all tests": "/acme/flaky-tests", tests: one.page("flaky-tests"), test: one.test,
    quarantine: one.page("flaky-tests/quarantine"), owners: one.page("flaky-tests/owners"),
    monitors: one.page("flaky-tests/monitors"),
    "a monitor": `${one.page("flaky-tests/monitors")}&monitor=flaky_on_stable`, uploads: one.page("flaky-tests/uploads"),
    webhooks: "/acme/webhooks", "events of webhooks": "/acme/webhooks/events", tokens: "/acme/tokens", audit: "/acme/audit", server: "/status", reference: "/reference", missing: "/acme/queue?repo=a/b/c&branch=x",
    forbidden: "/other/tokens", "sign in": "/sign-in",
  };
  const page = await open();

  await test("nothing is shown without signing in", async () => {
    for (const address of Object.values(pages).filter((it) => it !== "/sign-in")) {
      const reply = await page.goto(one.url + address);
      assert.equal(reply.status(), 401, address);
      assert.equal(await page.title(), "Sign in · Signalbox");
    }
  });
  await test("a wrong token is refused with a message", async () => {
    await page.goto(`${one.url}/sign-in`);
    await page.getByLabel("API token").fill("sbx_wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("unknown, expired or revoked").waitFor();
  });
  await test("signing in leads back to the requested page", async () => {
    await page.goto(one.url + one.queue);
    await page.getByLabel("API token").fill(one.tokens.admin);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { level: 1, name: /acme\/calc/ }).waitFor();
    const cookie = (await page.context().cookies()).find((it) => it.name === "signalbox");
    assert.ok(cookie.httpOnly && cookie.sameSite === "Lax" && cookie.path === "/");
  });
  await test("a page shows why a pull request waits and what happens next", async () => {
    await page.goto(one.url + one.pr(waiting));
    await page.locator(".answer .label").waitFor();
    assert.match(await page.locator(".answer").innerText(), /slots are in use|ahead must be built/);
    assert.match(await page.locator(".answer .next").innerText(), /starts when/i);
  });
  await test("the output of a running check shows its end and can be searched", async () => {
    await page.goto(one.url + one.pr(first));
    await page.getByRole("link", { name: "unit tests" }).first().click();
    const log = page.locator("pre[data-follow]");
    await log.getByText("waiting for the gate").waitFor();
    const isAtEnd = (it) => it.scrollTop > 0 && it.scrollTop + it.clientHeight > it.scrollHeight - 40;
    assert.ok(await log.evaluate(isAtEnd), "the end is in view");
    await page.getByLabel("Search output").fill("CASE 150");
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByText("1 of 301 lines match:").waitFor();
    assert.match(await page.locator("#found pre").innerText(), /^ +148 {2}case 148\n[^]*> 150 {2}case 150\n/);
    await page.getByRole("link", { name: "Clear the search" }).click();
    await page.locator("#found pre").waitFor({ state: "detached" });
  });
  await test("the queue is one table in queue order, with what is tested and what waits", async () => {
    await page.goto(one.url + one.queue);
    const rows = page.locator("#line tbody tr");
    await rows.first().waitFor();
    const places = (await rows.locator("td:first-child").allInnerTexts()).map(Number).filter(Boolean);
    assert.deepEqual(places, places.map((_, at) => at + 1));
    assert.match(await rows.first().innerText(), /Testing[^]*running/);
    assert.match(await page.locator("#line").innerText(), /Waiting/);
  });
  await test("on a phone, a waiting pull request has two lines, and its state is whole", async () => {
    await page.setViewportSize({ width: 375, height: 800 });
    await page.goto(one.url + one.queue);
    const rows = await page.evaluate(() => [...document.querySelectorAll("#line tbody tr")].map((row) => {
      const state = row.querySelector("td:nth-child(3)");
      return { height: row.getBoundingClientRect().height, isWhole: state.scrollWidth <= state.clientWidth, text: state.innerText };
    }));
    const waiting = rows.filter((row) => row.text.startsWith("Waiting"));
    assert.ok(waiting.length > 0 && waiting.every((row) => row.height < 62), JSON.stringify(rows));
    assert.ok(rows.every((row) => row.isWhole && row.height < 100), JSON.stringify(rows));
    await page.setViewportSize({ width: 1280, height: 800 });
  });
  await test("a pull request is found by its number", async () => {
    await page.goto(`${one.url}/`);
    await page.getByLabel("Repository, branch or #number").fill(`#${waiting}`);
    await page.keyboard.press("Enter");
    await page.waitForURL(/queue\/pr/);
  });
  // Each page, light and dark, narrow and wide.
  const checked = async (addresses) => {
    const found = [];
    const note = async (check) => { try { await check(); } catch (error) { found.push(error.message); } };
    for (const colorScheme of ["light", "dark"]) {
      const looking = await open({ colorScheme, bypassCSP: true });
      await signIn(looking, one.url, one.tokens.admin);
      for (const [name, address] of Object.entries(addresses)) {
        await looking.setViewportSize({ width: 1280, height: 900 });
        await looking.goto(one.url + address);
        await looking.evaluate(axe);
        for (const width of [1280, 320]) {
          await looking.setViewportSize({ width, height: 900 });
          await note(() => noViolations(looking, `${name}, ${colorScheme}, ${width} px`));
          await note(() => noSideScroll(looking, `${name}, ${width} px`));
        }
      }
      await looking.context().close();
    }
    assert.deepEqual(found, []);
  };
  await test("axe finds nothing on any page, light and dark, narrow and wide", () => checked(pages));
  await test("every reading page is whole without scripts", async () => {
    const plain = await open({ javaScriptEnabled: false });
    await signIn(plain, one.url, one.tokens.admin);
    for (const [name, address] of Object.entries(pages)) {
      await plain.goto(one.url + address);
      assert.equal(await plain.locator("h1").count(), 1, name);
      assert.ok((await plain.locator("main").innerText()).length > 20, name);
    }
    await plain.goto(one.url + one.queue);
    await plain.getByText("Submit a pull request").click();
    await plain.getByLabel("Pull request number", { exact: true }).fill(String(stranger));
    await plain.getByRole("button", { name: "Submit" }).click();
    await plain.getByText("The pull request was submitted.").waitFor();
    await plain.context().close();
  });
  await test("links of every page lead somewhere", async () => {
    const seen = new Set();
    for (const [name, address] of Object.entries(pages)) {
      if (["missing", "forbidden"].includes(name)) continue;
      await page.goto(one.url + address);
      const links = await page.locator("a[href^='/']").evaluateAll((all) => all.map((it) => it.getAttribute("href").split("#")[0]));
      for (const link of links.filter((it) => it && !seen.has(it))) {
        seen.add(link);
        const reply = await page.request.get(one.url + link, { maxRedirects: 2 });
        assert.ok(reply.ok(), `${link} on ${address}: ${reply.status()}`);
      }
    }
  });
  await test("the keyboard is enough", async () => {
    await page.goto(one.url + one.queue);
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    const first = await page.evaluate(() => document.activeElement.getAttribute("href"));
    assert.match(first, /queue\/pr/);
    await page.keyboard.press("k");
    await page.keyboard.press("?");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    const row = page.locator("tbody a[href*='queue/pr']").first();
    await row.focus();
    await page.keyboard.press("Enter");
    await page.waitForURL(/queue\/pr/);
    await page.goto(one.url + one.queue);
    await page.locator("body").press("g");
    await page.keyboard.press("t");
    await page.waitForURL(/flaky-tests$/);
  });
  await test("keys can be switched off", async () => {
    await page.keyboard.press("?");
    await page.getByLabel("No single-key shortcuts").check();
    await page.getByRole("button", { name: "Close" }).click();
    await page.locator("body").press("g");
    await page.keyboard.press("q");
    assert.match(page.url(), /flaky-tests/);
    await page.evaluate(() => localStorage.clear());
  });
  await test("a pause needs a reason and the page shows it", async () => {
    await page.goto(one.url + one.quiet);
    await page.getByText("Pause the queue").click();
    await page.getByLabel("Reason").first().fill("the release is out");
    await page.getByRole("button", { name: "Pause", exact: true }).click();
    await page.getByText("The release is out.").waitFor();
    await page.getByText("Resume the queue").click();
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByText("The queue is running.").first().waitFor();
  });
  await test("a change is seen elsewhere within two seconds, and focus, typing and boxes stay", async () => {
    const other = await open();
    await signIn(other, one.url, one.tokens.admin);
    await other.goto(one.url + one.quiet);
    await other.getByText(/^live/).waitFor();
    await other.getByText("Pause the queue").click();
    const field = other.locator("#pause-reason");
    await field.fill("half a sentence");
    await page.goto(one.url + one.quiet);
    await page.getByText("Drain the queue").click();
    await page.locator("#drain-reason").fill("closing time");
    const started = Date.now();
    await page.getByRole("button", { name: "Drain", exact: true }).click();
    await other.locator(".beside").getByText("Draining").waitFor({ timeout: 2000 });
    console.log(`        seen after ${Date.now() - started} ms`);
    assert.equal(await field.inputValue(), "half a sentence");
    assert.ok(await field.evaluate((it) => it === document.activeElement), "the focus was lost");
    assert.ok(await other.locator("#pause-box").evaluate((it) => it.open), "the box was closed");
    await other.context().close();
  });
  await test("updates wait while they are paused", async () => {
    const other = await open();
    await signIn(other, one.url, one.tokens.admin);
    await other.goto(one.url + one.quiet);
    await other.getByText(/^live/).waitFor();
    await other.getByRole("button", { name: "Pause updates" }).click();
    await other.getByText("paused by you").waitFor();
    await one.call("updateQueue", { targetBranch: "quiet", state: "RUNNING" });
    await other.waitForTimeout(1800);
    assert.equal(await other.locator(".beside").getByText("Draining").count(), 1);
    await other.getByRole("button", { name: "Resume updates" }).click();
    await other.locator(".beside").getByText("Running").waitFor({ timeout: 2000 });
    await other.context().close();
  });
  await test("settings are changed after a preview", async () => {
    await page.goto(one.url + one.page("queue/settings").replace("branch=main", "branch=quiet"));
    await page.getByLabel("Concurrency", { exact: true }).fill("4");
    await page.getByRole("button", { name: "Preview the change" }).click();
    assert.match(await page.locator("#difference").innerText(), /Concurrency/);
    await page.getByRole("button", { name: "Save these changes" }).click();
    await page.getByText("The settings were changed.").waitFor();
    assert.equal(await page.getByLabel("Concurrency", { exact: true }).inputValue(), "4");
  });
  await test("the second of two editors sees both versions", async () => {
    const address = one.url + one.page("queue/settings").replace("branch=main", "branch=quiet");
    const late = await open();
    await signIn(late, one.url, one.tokens.admin);
    await late.goto(address);
    await late.getByLabel("Concurrency", { exact: true }).fill("9");
    await late.getByRole("button", { name: "Preview the change" }).click();
    await late.locator("#difference").waitFor();
    await one.call("updateQueue", { targetBranch: "quiet", concurrency: 6 });
    const [reply] = await Promise.all([
      late.waitForResponse((it) => it.request().method() === "POST"),
      late.getByRole("button", { name: "Save these changes" }).click(),
    ]);
    assert.equal(reply.status(), 412);
    assert.match(await late.locator("#both").innerText(), /Concurrency\s+6\s+9/);
    await late.getByRole("button", { name: "Preview my changes" }).click();
    await late.getByRole("button", { name: "Save these changes" }).click();
    await late.getByText("The settings were changed.").waitFor();
    assert.equal(await late.getByLabel("Concurrency", { exact: true }).inputValue(), "9");
    await late.context().close();
  });
  await test("a setting out of its bounds is refused with a message", async () => {
    await page.goto(`${one.url}${one.page("queue/settings")}&concurrency=0`);
    await page.getByRole("heading", { name: "Not possible now" }).waitFor();
  });
  await test("a test is flagged, quarantined and linked to a ticket", async () => {
    await page.goto(one.url + one.test);
    await page.getByText("Commits on which it passed and failed").first().waitFor({ state: "attached" });
    await page.getByText("Change quarantine").click();
    await page.locator("#quarantine-setting").selectOption("ALWAYS_QUARANTINE");
    await page.getByRole("button", { name: "Change" }).click();
    await page.getByText("The quarantine of the test was changed.").waitFor();
    await page.getByText("Link a ticket").click();
    await page.getByLabel("Ticket id").fill("CALC-7");
    await page.getByRole("button", { name: "Link", exact: true }).click();
    await page.getByText("CALC-7").waitFor();
  });
  await test("a priority is changed and a pull request is removed", async () => {
    await page.goto(one.url + one.pr(waiting));
    await page.getByText("Change priority").click();
    await page.locator("#priority-priority").selectOption("low");
    await page.getByRole("button", { name: "Change", exact: true }).click();
    await page.getByText("The priority was changed.").waitFor();
    await page.getByText("Remove from the queue").click();
    await page.getByRole("button", { name: "Remove" }).click();
    await page.getByText("The pull request was removed from the queue.").waitFor();
    await page.getByRole("button", { name: "Submit again" }).waitFor();
  });
  await test("a viewer reads and is offered nothing to change", async () => {
    const reader = await open();
    await signIn(reader, one.url, one.tokens.viewer);
    await reader.goto(one.url + one.queue);
    assert.equal(await reader.locator("main form[method=post]").count(), 0);
    const reply = await reader.goto(`${one.url}/acme/tokens`);
    assert.equal(reply.status(), 403);
    await reader.context().close();
  });
  await test("another organization gets the same page as for nothing at all", async () => {
    const other = await open();
    await signIn(other, one.url, one.tokens.other);
    const body = async (address) => {
      const reply = await other.goto(one.url + address);
      assert.equal(reply.status(), 404, address);
      return (await other.locator("main").innerText()).replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "ID");
    };
    assert.equal(await body(one.queue), await body("/unknown/queue?repo=a/b/c&branch=x"));
    await body(one.test);
    await other.context().close();
  });
  await test("a form from elsewhere is refused", async () => {
    const cookie = (await page.context().cookies()).map((it) => `${it.name}=${it.value}`).join("; ");
    const send = (headers, form) => fetch(`${one.url}/acme/queue/do`, {
      method: "POST", redirect: "manual", headers: { cookie, ...headers }, body: new URLSearchParams(form),
    });
    const form = { action: "resume", repo: "git.local/acme/calc", branch: "quiet" };
    assert.equal((await send({ origin: one.url }, form)).status, 403, "without the form's token");
    await page.goto(one.url + one.quiet);
    const token = await page.locator("input[name=form_token]").first().inputValue();
    assert.equal((await send({ origin: "https://evil.example" }, { ...form, form_token: token })).status, 403);
    assert.equal((await send({}, { ...form, form_token: token })).status, 403, "without an origin");
    assert.equal((await send({ origin: one.url }, { ...form, form_token: token })).status, 303);
  });
  await test("a page with the output of a running check shows when it has ended", async () => {
    await page.goto(one.url + pages["output of a running check"]);
    await page.locator("pre[data-follow]").getByText("waiting for the gate").waitFor();
    one.open();
    await page.locator("#output pre:not([data-follow])").waitFor({ timeout: 20000 });
    await page.getByText("Passed").first().waitFor();
  });
  await test("charts come with their numbers", async () => {
    one.open();
    await one.until("a merge", async () => (await one.call("getSubmittedPullRequest", { pr: { number: first } })).state === "MERGED");
    await page.goto(one.url + one.page("queue/health"));
    await page.getByText("Outcomes of the queue as a table").click();
    assert.ok(await page.locator("#outcomes-table tbody tr").count() >= 1);
  });
  await test("a merge is shown on an open page and announced", async () => {
    await page.goto(one.url + one.queue);
    await page.locator("#recent").getByText("Merged").first().waitFor({ timeout: 10000 });
    assert.ok(await page.locator("#spoken").getAttribute("role") === "status");
  });
  await test("pull requests that left show why", async () => {
    await one.until("a failure", async () => (await one.call("getSubmittedPullRequest", { pr: { number: one.numbers[1] } })).state === "FAILED");
    await page.goto(one.url + one.page("queue/left") + "&state=FAILED");
    assert.match(await page.locator("#left").innerText(), /required check failed/i);
    await page.goto(one.url + one.pr(one.numbers[1]));
    assert.match(await page.locator(".answer").innerText(), /failed on top of #1/i);
  });
  await test("the first page is small", async () => {
    const cold = await open();
    await signIn(cold, one.url, one.tokens.admin);
    let bytes = 0;
    await cold.context().clearCookies({ name: "none" });
    const fresh = await open({ storageState: await cold.context().storageState() });
    fresh.on("response", async (reply) => { bytes += Number((await reply.body().catch(() => "")).length); });
    await fresh.goto(one.url + one.queue);
    await fresh.waitForTimeout(300);
    assert.ok(bytes < 120 * 1024, `${bytes} bytes`);
    await fresh.context().close();
    await cold.context().close();
  });
  await further({ test, one, page, open, pages });
  await oidc({ test, one, open });
  await webhooks({ test, one, page, open, checked });
  await test("a session ends with its token, and with signing out", async () => {
    const made = JSON.parse(one.box("token", "create", "--org", "acme", "--name", "short", "--scope", "all", "--json"));
    const other = await open();
    await signIn(other, one.url, made.token);
    await page.goto(`${one.url}/acme/tokens`);
    await page.getByText("Revoke short").click();
    await page.locator(`#revoke-${made.id} button`).click();
    await page.getByText("The token was revoked.").waitFor();
    await other.waitForTimeout(1100);
    assert.equal((await other.goto(`${one.url}/`)).status(), 401);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.waitForURL(/sign-in/);
    assert.equal((await page.goto(`${one.url}/`)).status(), 401);
    await other.context().close();
  });
} finally {
  await one?.stop();
}

await servers({ test, open, wanted });

let two;
try {
  two = await world({ hostile: true });
  await test("names and texts are never markup", async () => {
    const page = await open();
    await signIn(page, two.url, two.tokens.admin);
    for (const address of ["/", two.queue, two.quiet, ...two.numbers.map(two.pr), two.page("queue/graph"),
      ...["queue", "queue/graph", "queue/left", "queue/health", "queue/settings"].map(two.odd),
      two.page("queue/left"), two.page("flaky-tests"), two.test, two.page("flaky-tests/quarantine"),
      two.page("flaky-tests/owners"), `${two.page("flaky-tests/monitors")}&monitor=pass_on_retry`,
      two.page("flaky-tests/uploads"), "/acme/tokens", "/acme/audit", `/?q=${encodeURIComponent(HOSTILE)}`,
      `${two.page("flaky-tests")}&q=${encodeURIComponent(HOSTILE)}`]) {
      await page.goto(two.url + address);
      assert.equal(await page.locator("img, base, svg[onload], main script, main style").count(), 0, address);
      assert.equal(await page.locator("a[href^='javascript' i], [style], [onerror], [onload]").count(), 0, address);
      const words = `${await page.title()} ${await page.locator("body").innerText()}`;
      assert.ok(!HIDDEN.test(words), `${address} turns or hides text: ${JSON.stringify(HIDDEN.exec(words))}`);
      await page.setViewportSize({ width: 320, height: 800 });
      await noSideScroll(page, address);
      await page.setViewportSize({ width: 1280, height: 900 });
    }
    await page.goto(two.url + two.queue);
    await page.waitForTimeout(1500);
    await page.getByText("<img src=x onerror=alert(1)>").first().waitFor();
    await page.getByText("\u{1f468}\u200d\u{1f469}\u200d\u{1f467}").first().waitFor();
    const tall = await page.locator("main tr").evaluateAll((rows) => rows.filter((row) => row.offsetHeight > 400).length);
    assert.equal(tall, 0, "a row is taller than a window");
    await page.context().close();
  });
} finally {
  await two?.stop();
  await browser.close();
}
console.log(failed.length ? `\n${failed.length} of ${count} journeys failed: ${failed.join(", ")}` : `\nall ${count} journeys are good`);
process.exit(failed.length ? 1 : 0);
