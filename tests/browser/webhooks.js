// Journeys through webhooks and tokens, called by run.js.
import assert from "node:assert/strict";
import { signIn } from "./browser.js";
import { HOSTILE, receiver } from "./world.js";

export async function webhooks({ test, one, page, open, checked }) {
  let endpoint;
  let message;
  let fails = true;
  const target = await receiver(() => (fails ? { status: 400, text: HOSTILE.repeat(200) } : { status: 200, text: "taken" }));
  await test("an endpoint is made and its secret is shown once", async () => {
    await page.goto(`${one.url}/acme/webhooks`);
    await page.getByText("Create an endpoint").click();
    await page.getByLabel("URL").fill(`${target.url}?q="><script>alert(3)</script>`);
    await page.getByLabel("Description").fill("markup in its URL");
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByText("Url must be a valid URL with an ASCII host name").waitFor();
    await page.goto(`${one.url}/acme/webhooks`);
    await page.getByText("Create an endpoint").click();
    await page.getByLabel("URL").fill(`${target.url}?q='onload=alert(3)&amp;x=/*`);
    await page.getByLabel("Description").fill(HOSTILE.replace("\u202e", ""));
    await page.getByLabel("pull_request.merged", { exact: true }).check();
    await page.getByRole("button", { name: "Create", exact: true }).click();
    assert.match(await page.locator("#secret pre").innerText(), /^whsec_/);
    await page.getByRole("link", { name: "Done", exact: true }).click();
    endpoint = new URL(page.url()).pathname + new URL(page.url()).search;
    assert.ok(!(await page.content()).includes("whsec_"));
  });
  await test("a test is sent, fails, and its page shows what came back as text", async () => {
    await page.getByText("Send a test").first().click();
    await page.getByLabel("Event", { exact: true }).first().selectOption("queue.state_changed");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.getByText("The test message is queued.").waitFor();
    message = page.url().replace(one.url, "").replace(/&said=.*/, "");
    await one.until("an attempt", async () => target.got.length > 0);
    await one.until("its answer", async () => {
      await page.goto(one.url + message);
      return (await page.getByRole("heading", { name: /Attempt 1: Rejected 400/ }).count()) === 1;
    });
    const shown = await page.locator("#try-1 pre").last().innerText();
    assert.ok(shown.startsWith("<img src=x onerror=alert(1)>") && shown.length <= 4096, shown.length);
    assert.ok(!shown.includes("\u202e"), "text is turned around");
    assert.equal(await page.locator("main img, main script").count(), 0);
    assert.match(await page.locator("#payload pre").innerText(), /queue.state_changed/);
    assert.match(await page.locator("#try-1 pre").first().innerText(), /webhook-id/);
  });
  await test("the log of an endpoint is filtered", async () => {
    await page.goto(one.url + endpoint);
    assert.equal(await page.locator("#deliveries tbody tr").count(), 1);
    await page.locator("#filter-state").selectOption("delivered");
    await page.getByRole("button", { name: "Show" }).click();
    await page.getByText("No deliveries match this filter.").waitFor();
    await page.getByRole("link", { name: "Show all deliveries" }).click();
    await page.locator("#deliveries tbody tr a").click();
    await page.getByRole("heading", { name: "Payload" }).waitFor();
  });
  await test("a secret is replaced and both sign for a while", async () => {
    fails = false;
    await page.goto(one.url + endpoint);
    await page.getByText("Rotate the secret").click();
    await page.getByRole("button", { name: "Create a new secret" }).click();
    assert.match(await page.locator("#secret pre").innerText(), /^whsec_/);
    const before = target.got.length;
    await page.goto(one.url + endpoint);
    await page.getByText(/the previous one for/).waitFor();
    await page.getByText("Send a test").first().click();
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await one.until("a test", async () => target.got.length > before);
    const signed = target.got.at(-1).headers["webhook-signature"].split(" ");
    assert.equal(signed.length, 2, "two signatures");
  });
  await test("a delivered message is resent under its id", async () => {
    await one.until("the delivery", async () => {
      await page.reload();
      return (await page.getByRole("heading", { name: /Attempt 1: Delivered 200/ }).count()) === 1;
    });
    const before = target.got.length;
    await page.getByRole("button", { name: "Resend" }).click();
    await page.getByText("The message is queued again.").waitFor();
    await one.until("it again", async () => target.got.length > before);
    assert.equal(target.got.at(-1).headers["webhook-id"], target.got[before - 1].headers["webhook-id"]);
  });
  await test("an endpoint is switched off and on", async () => {
    await page.goto(one.url + endpoint);
    await page.getByText("Turn off").first().click();
    await page.getByRole("button", { name: "Turn off" }).click();
    await page.getByText("No messages are sent.").waitFor();
    await page.getByText("Turn on").first().click();
    await page.getByRole("button", { name: "Turn on" }).click();
    await page.getByText("The endpoint was turned on.").waitFor();
  });
  await test("axe finds nothing on the pages of webhooks", async () => {
    await checked({ "an endpoint": endpoint, "a message": message, "all webhooks": "/acme/webhooks", events: "/acme/webhooks/events", "an event": "/acme/webhooks/events?event=queue.state_changed" });
  });
  await test("a token is made, replaced and used", async () => {
    await page.goto(`${one.url}/acme/tokens`);
    await page.getByText("Create a token").click();
    await page.getByLabel("Name").fill("ci");
    await page.getByLabel(/queue:submit/).check();
    await page.getByRole("button", { name: "Create", exact: true }).click();
    const text = (await page.locator("#secret pre").innerText()).trim();
    assert.match(text, /^sbx_/);
    const other = await open();
    await signIn(other, one.url, text);
    assert.equal(await other.locator(".who .chip").innerText(), "submitter");
    assert.equal((await other.goto(`${one.url}/acme/webhooks`)).status(), 403);
    await other.context().close();
    await page.goto(`${one.url}/acme/tokens`);
    await page.getByText("Replace ci").click();
    await page.locator("form[id^=rotate] button:visible").click();
    assert.match(await page.locator("#secret pre").innerText(), /^sbx_/);
    await page.goto(`${one.url}/acme/audit`);
    await page.locator("#audit").getByText("token rotated").first().waitFor();
    await page.locator("#audit").getByText("token created").first().waitFor();
  });
  target.stop();
}
