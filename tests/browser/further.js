// More journeys: updates of pages that were just opened, copying, keyboard shortcuts, and the
// structure of pages.
import assert from "node:assert/strict";
import { signIn } from "./browser.js";

export async function further({ test, one, page, open, pages }) {
  const gone = ["missing", "forbidden", "sign in"];
  await test("every page has a title of its own and no id twice", async () => {
    const titles = new Map();
    for (const [name, address] of Object.entries(pages)) {
      await page.goto(one.url + address);
      const twice = await page.evaluate(() => {
        const all = [...document.querySelectorAll("[id]")].map((it) => it.id);
        return all.filter((it, at) => all.indexOf(it) !== at);
      });
      assert.deepEqual(twice, [], name);
      const title = await page.title();
      if (![...gone, "preview", "the last hour", "the small graph"].includes(name)) {
        assert.ok(!titles.has(title), `${name} and ${titles.get(title)} are both called ${title}`);
        titles.set(title, name);
      }
    }
  });
  const sizes = async (check, subject) => {
    let seen = 0;
    for (const width of [1280, 768, 375, 320]) {
      await page.setViewportSize({ width, height: 800 });
      for (const [name, address] of Object.entries(pages)) {
        await page.goto(one.url + address);
        assert.deepEqual(await page.evaluate(check), [], `${name}, ${width} px`);
        seen += await page.locator(subject).count();
      }
    }
    assert.ok(seen > 20, `${seen} of ${subject}`);
    await page.setViewportSize({ width: 1280, height: 800 });
  };
  await test("no word of a table is cut in the middle, at any width", () => sizes(() => {
    const cut = [];
    for (const cell of document.querySelectorAll("main th, main td")) {
      const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
      while (texts.nextNode()) {
        // Longer ones, such as ids and addresses, are cut where they must be.
        for (const word of texts.currentNode.data.matchAll(/[\p{L}\p{N}]{2,16}(?=[\s.,:;]|$)/gu)) {
          if (word.index > 0 && !/\s/.test(texts.currentNode.data[word.index - 1])) continue;
          const range = document.createRange();
          range.setStart(texts.currentNode, word.index);
          range.setEnd(texts.currentNode, word.index + word[0].length);
          const lines = new Set([...range.getClientRects()].map((it) => Math.round(it.top)));
          if (lines.size > 1) cut.push(word[0]);
        }
      }
    }
    return cut;
  }, "main td"));
  await test("labels of charts are inside their frame and readable, and the newest part is in view", () => sizes(() => {
    const wrong = [];
    for (const chart of document.querySelectorAll("svg.chart")) {
      const frame = chart.getBoundingClientRect();
      for (const label of chart.querySelectorAll("text")) {
        const box = label.getBoundingClientRect();
        const inside = box.left >= frame.left - 1 && box.right <= frame.right + 1 && box.top >= frame.top - 1 && box.bottom <= frame.bottom + 1;
        if (!inside) wrong.push(`${label.textContent} is outside`);
        if (box.height < 9 || box.height > 24) wrong.push(`${label.textContent} is ${box.height} px high`);
      }
      for (const label of chart.querySelectorAll("rect + text")) {
        const box = label.previousElementSibling.getBoundingClientRect();
        if (label.getBoundingClientRect().right > box.right + 1) wrong.push(`${label.textContent} leaves its box`);
      }
      const seen = chart.closest(".scroll").getBoundingClientRect();
      if (!chart.matches(".natural, .rows") && frame.right > seen.right + 1) wrong.push(`the newest part of ${chart.id} is out of view`);
    }
    return wrong;
  }, "svg.chart"));
  await test("a page of tests that was just opened shows no new content", async () => {
    await page.goto(one.url + one.page("flaky-tests"));
    await page.getByText(/^live/).waitFor();
    // Longer than the server takes to ask the database for the first time.
    await page.waitForTimeout(2500);
    assert.ok(await page.locator("#newer").isHidden(), "there is no news");
    await one.upload("b".repeat(40), true);
    await page.locator("#newer").waitFor({ timeout: 10000 });
  });
  await test("changes before a page is connected are shown when it is", async () => {
    const late = await open();
    await signIn(late, one.url, one.tokens.admin);
    // Another page listens, so that the server knows the newest version already.
    await page.goto(one.url + one.quiet);
    await page.getByText(/^live/).waitFor();
    let connect;
    const held = new Promise((done) => { connect = done; });
    await late.route("**/ui/events*", async (route) => { await held; await route.continue(); });
    await late.goto(one.url + one.quiet);
    await late.locator(".beside").getByText("Running").waitFor();
    await one.call("updateQueue", { targetBranch: "quiet", state: "DRAINING" });
    await page.locator(".beside").getByText("Draining").waitFor({ timeout: 3000 });
    connect();
    await late.locator(".beside").getByText("Draining").waitFor({ timeout: 3000 });
    await one.call("updateQueue", { targetBranch: "quiet", state: "RUNNING" });
    await late.context().close();
  });
  await test("times do not grow old on a page where nothing happens", async () => {
    const still = await open();
    await still.clock.install();
    await signIn(still, one.url, one.tokens.admin);
    await still.goto(one.url + one.quiet);
    await still.getByText(/^live/).waitFor();
    await still.clock.fastForward(61000);
    const again = (it) => it.url() === one.url + one.quiet && it.resourceType() === "xhr";
    await still.waitForRequest(again, { timeout: 20000 });
    await still.context().close();
  });
  await test("calls, ids and the link of a page can be copied", async () => {
    const writer = await open({ permissions: ["clipboard-read", "clipboard-write"] });
    await signIn(writer, one.url, one.tokens.admin);
    const copied = () => writer.evaluate(() => navigator.clipboard.readText());
    await writer.goto(one.url + one.page("queue/settings"));
    await writer.getByText("The same from the API").focus();
    await writer.keyboard.press("Enter");
    await writer.getByRole("button", { name: "Copy it" }).focus();
    await writer.keyboard.press("Enter");
    await writer.getByRole("button", { name: "Copied" }).waitFor();
    assert.match(await copied(), /^curl -H "x-api-token: \$SIGNALBOX_TOKEN"[^]*updateQueue"$/);
    assert.equal(await writer.locator("#spoken").innerText(), "Copied");
    await writer.getByRole("button", { name: "Copy the link to this page" }).click();
    await writer.getByRole("button", { name: "Copied" }).first().waitFor();
    assert.equal(await copied(), one.url + one.page("queue/settings"));
    await writer.goto(one.url + one.test);
    const id = /test\/([0-9a-f-]{36})/.exec(one.test)[1];
    await writer.locator("dd").filter({ hasText: id }).getByRole("button", { name: "Copy" }).click();
    await writer.getByRole("button", { name: "Copied" }).waitFor();
    assert.equal(await copied(), id);
    await writer.context().close();
  });
  await test("several pull requests are removed with the keyboard", async () => {
    const number = one.numbers[4];
    await one.call("updateQueue", { targetBranch: "main", state: "PAUSED", reason: "to take some out" });
    await one.call("submitPullRequest", { pr: { number } });
    await page.goto(one.url + one.queue);
    await page.getByText("Remove several pull requests").focus();
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    await page.keyboard.type(`#${number}`);
    await page.keyboard.press("Tab");
    await page.keyboard.type("no");
    await page.keyboard.press("Enter");
    await page.getByText("Nothing was removed: type remove to confirm.").waitFor();
    await page.goto(one.url + one.queue);
    await page.getByText("Remove several pull requests").focus();
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    await page.keyboard.type(`#${number}`);
    await page.keyboard.press("Tab");
    await page.keyboard.type("remove");
    await page.keyboard.press("Enter");
    await page.getByText("The pull requests were removed from the queue.").waitFor();
    const { state } = await one.call("getSubmittedPullRequest", { pr: { number } });
    assert.equal(state, "CANCELLED");
    await one.call("updateQueue", { targetBranch: "main", state: "RUNNING" });
  });
  await test("the search is one key away from every page", async () => {
    await page.goto(one.url + one.page("queue/health"));
    await page.locator("body").press("/");
    await page.waitForURL(/#search-q$/);
    await page.waitForFunction(() => document.activeElement.id === "search-q");
  });
  await test("the audit log is filtered by action and object", async () => {
    await page.goto(`${one.url}/acme/audit`);
    await page.getByLabel("Action", { exact: true }).selectOption("queue.updated");
    await page.getByRole("button", { name: "Show" }).click();
    await page.waitForURL(/action=queue.updated/);
    const kinds = await page.locator("#audit tbody td:nth-child(3)").allInnerTexts();
    assert.ok(kinds.length > 0 && kinds.every((it) => it.includes("queue updated")), kinds.join());
    await page.locator("#audit tbody td:nth-child(4) a").filter({ hasText: "quiet" }).first().click();
    await page.waitForURL(/object=queue/);
    const objects = await page.locator("#audit tbody td:nth-child(4)").allInnerTexts();
    assert.ok(objects.length > 0 && objects.every((it) => it.includes("quiet")), objects.join());
  });
}
