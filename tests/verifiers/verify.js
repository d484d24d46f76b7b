// Checks recorded webhooks with the npm packages standardwebhooks and svix, each of which reads its
// own set of headers. Each line of the file is a JSON object with secret, headers and body.
// Receivers refuse messages older than five minutes, so run it right after the recording.

const { readFileSync } = require("node:fs");
const { createRequire } = require("node:module");
const { join } = require("node:path");

const load = createRequire(join(process.cwd(), "verify.js"));
const standard = load("standardwebhooks").Webhook;
const svix = load("svix").Webhook;

let count = 0;
for (const line of readFileSync(process.argv[2], "utf8").trim().split("\n")) {
  const { secret, headers, body } = JSON.parse(line);
  const only = (prefix) =>
    Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith(prefix)));
  new standard(secret).verify(body, only("webhook-"));
  new svix(secret).verify(body, only("svix-"));
  count += 1;
}
console.log(`${count} verified`);
