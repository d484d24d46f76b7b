// A fresh browser, and the errors that pages cause in it.
import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

export const executable = () =>
  [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((it) => it && existsSync(it));

export const launch = () => chromium.launch({
  executablePath: executable(),
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", `--crash-dumps-dir=${mkdtempSync(join(tmpdir(), "crash-"))}`],
});

// Whatever breaks the policy for contents, opens a dialog or fails in a script ends up in `errors`.
export async function watch(page, errors) {
  page.on("dialog", async (dialog) => { errors.push(`dialog: ${dialog.message()}`); await dialog.dismiss(); });
  page.on("pageerror", (error) => errors.push(`script: ${error.message}`));
  page.on("console", (message) => {
    if (/Content Security Policy|Refused to/.test(message.text())) errors.push(`policy: ${message.text()}`);
  });
}

export async function signIn(page, url, token) {
  await page.goto(`${url}/sign-in`);
  await page.getByLabel("API token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL((at) => !at.pathname.startsWith("/sign-in"));
}
