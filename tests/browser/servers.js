// Journeys through two servers on one PostgreSQL.
import assert from "node:assert/strict";
import { signIn } from "./browser.js";
import { postgres } from "./postgres.js";
import { world } from "./world.js";

export async function servers({ test, open, wanted }) {
  const name = "a change on one server is seen on another within two seconds";
  if (!wanted(name)) return;
  const database = await postgres();
  if (!database) {
    console.log(`skipped ${name}: no PostgreSQL here`);
    return;
  }
  let one;
  let second;
  try {
    one = await world({ database: database.url });
    second = await one.second();
    await test(name, async () => {
      const page = await open();
      await signIn(page, second.url, one.tokens.admin);
      await page.goto(second.url + one.quiet);
      await page.getByText(/^live/).waitFor();
      const took = [];
      for (const [state, word] of [["PAUSED", "Paused"], ["DRAINING", "Draining"], ["RUNNING", "Running"], ["PAUSED", "Paused"], ["RUNNING", "Running"]]) {
        const started = Date.now();
        await one.call("updateQueue", { targetBranch: "quiet", state });
        await page.locator(".beside").getByText(word).waitFor({ timeout: 2000 });
        took.push(Date.now() - started);
      }
      console.log(`        seen after ${took.join(", ")} ms`);
      assert.ok(Math.max(...took) <= 2000);
      await page.context().close();
    });
    await test("a session of one server is valid on another, and so is its end", async () => {
      const page = await open();
      await signIn(page, one.url, one.tokens.viewer);
      const elsewhere = one.url.replace(/\d+$/, "") + new URL(second.url).port;
      assert.equal((await page.goto(elsewhere)).status(), 200, "cookies know no ports");
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.waitForURL(/sign-in/);
      assert.equal((await page.goto(one.url)).status(), 401);
      await page.context().close();
    });
  } finally {
    await second?.stop();
    await one?.stop();
    database.stop();
  }
}
