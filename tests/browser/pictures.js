// The pictures of the documentation: small, from a server with something to see.
import { mkdirSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { launch, signIn } from "./browser.js";
import { world } from "./world.js";

const folder = process.env.PICTURES ?? resolve(import.meta.dirname, "../../docs/images");
mkdirSync(folder, { recursive: true });
const one = await world();
const browser = await launch();
try {
  const context = await browser.newContext({ viewport: { width: 1180, height: 760 } });
  const page = await context.newPage();
  await signIn(page, one.url, one.tokens.admin);
  const shoot = async (name, address) => {
    await page.goto(one.url + address);
    await page.waitForTimeout(1200);
    const path = join(folder, `${name}.png`);
    await page.screenshot({ path });
    console.log(`${path}: ${Math.round(statSync(path).size / 1024)} KiB`);
  };
  await shoot("queue", one.queue);
  await shoot("pull-request", one.pr(one.numbers[4]));
  await shoot("graph", one.page("queue/graph"));
  await shoot("test", one.test);
  one.open();
  await one.until("a merge", async () => (await one.call("getSubmittedPullRequest", { pr: { number: one.numbers[0] } })).state === "MERGED");
  await one.until("an end", async () => (await one.call("getQueue", {})).enqueuedPullRequests.length === 0, 40);
  await shoot("left", one.page("queue/left"));
  await page.emulateMedia({ colorScheme: "dark" });
  await shoot("health-dark", one.page("queue/health"));
} finally {
  await browser.close();
  await one.stop();
}
