// A server with something to see: a queue under test, pull requests of every kind, test results,
// and names that would like to be markup.
import { execFileSync, spawn } from "node:child_process";
import { copyFileSync, mkdtempSync, mkdirSync, readFileSync, writeFileSync, rmSync, existsSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const BINARY = process.env.SIGNALBOX_BIN ?? resolve(import.meta.dirname, "../../target/debug/signalbox");
export const HOSTILE = `<img src=x onerror=alert(1)>"'><script>alert(2)</script>\u202e{{7*7}}`;
// More hostile titles: markup, and characters that hide or reorder text.
const FURTHER = [
  `long ${"y".repeat(10000)}`,
  "\u05e2\u05d1\u05e8\u05d9\u05ea \u2067123\u2069 \u0645\u0631\u062d\u0628\u0627",
  "zero\u200b\u2060\ufeffwidth\u00ad ad\u200dmin \u3164\u2800",
  `tower ${"a" + "\u0336\u0489\u030d".repeat(60)}`,
  "\u{1f468}\u200d\u{1f469}\u200d\u{1f467} \u{1f3f3}\ufe0f\u200d\u{1f308} \u26d4",
  "line one\nline two\r\n\tthree \u2028 four\u0007",
  "</script></style></textarea></title></svg><!-- ]]> <base href=//evil.example>",
  "javascript:alert(5)//.notice{position:fixed} url(//evil.example) &lt;b&gt; %3Cb%3E ${7*7} <%= 7 %>",
];
// What turns or hides text.
export const HIDDEN = /[\u0007\u00ad\u200b\u2028\u2029\u202a-\u202e\u2060-\u206f\u2800\u3164\ufeff]/;
export const ODD_BRANCH = "<svg/onload=alert(6)>\u202e'\"";
export const REPO = "git.local/acme/calc";

export const free = () => new Promise((done) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address();
    server.close(() => done(port));
  });
});

// A webhook receiver. It replies as configured; `got` has the requests.
export async function receiver(answer) {
  const got = [];
  const server = createHttpServer((request, reply) => {
    let body = "";
    request.on("data", (data) => { body += data; });
    request.on("end", () => {
      got.push({ headers: request.headers, body });
      const { status, text } = answer(got.length);
      reply.writeHead(status, { "content-type": "text/html" }).end(text);
    });
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { url: `http://127.0.0.1:${server.address().port}/in`, got, stop: () => server.close() };
}

export async function world({ hostile = false, nice = false, more = () => "", port = 0, database = "" } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "signalbox-browser-"));
  const bare = join(folder, "git/acme/calc.git");
  const work = join(folder, "work");
  const gate = join(folder, "gate");
  port ||= await free();
  const url = `http://127.0.0.1:${port}`;
  const config = join(folder, "signalbox.toml");
  mkdirSync(bare, { recursive: true });
  mkdirSync(work);
  writeFileSync(config, `
data_dir = "${folder}/data"
[server]
listen = "127.0.0.1:${port}"
public_url = "${url}"
[log]
level = "warn"
${database && `[database]\nurl = "${database}"`}
[webhooks]
allow = ["127.0.0.1/32"]
allow_http = true
[[organizations]]
slug = "acme"
[[organizations.hosts]]
kind = "git"
host = "git.local"
root = "${folder}/git"
checks = { concurrency = 2 }
[[organizations]]
slug = "other"
${more(folder)}`);
  const git = (...args) => execFileSync("git", ["-c", "user.name=Ada", "-c", "user.email=ada@example.org",
    "-c", "init.defaultBranch=main", "-c", "core.hooksPath=/dev/null", ...args],
    { cwd: work, env: { ...process.env, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" }, stdio: "pipe" }).toString();
  const box = (...args) => execFileSync(BINARY, ["--config", config, ...args], { cwd: folder, stdio: "pipe" }).toString();

  git("init", "-q", "--bare", bare);
  git("init", "-q");
  writeFileSync(join(work, ".signalbox.toml"), "[merge]\nrequired_statuses = [\"unit tests\", \"lint\"]\n\n[[checks]]\nname = \"unit tests\"\nrun = [\"sh\", \"check.sh\"]\ntimeout_minutes = 9\n\n[[checks]]\nname = \"lint\"\nrun = [\"true\"]\ntimeout_minutes = 9\n");
  writeFileSync(join(work, "check.sh"), `seq 1 300 | sed 's/^/case /'\necho waiting for the gate\nwhile [ ! -e "${gate}" ]; do sleep 0.1; done\n[ ! -e broken ] || { echo "assertion failed: 2 + 2 = 5"; exit 1; }\n`);
  git("add", "-A");
  git("commit", "-q", "-m", "A calculator");
  git("push", "-q", bare, "main", "main:refs/heads/quiet");
  const titles = hostile
    ? [HOSTILE, `${HOSTILE} again`, "x".repeat(400), ...FURTHER, "plain"]
    : ["Subtract two numbers", "Round halves to even", "Read numbers with a comma", "Cache the last result", "Multiply two numbers", "Name the operands"];
  if (hostile) git("push", "-q", bare, `main:refs/heads/${ODD_BRANCH}`);
  titles.forEach((title, at) => {
    git("checkout", "-q", "-b", `change-${at}`, "main");
    writeFileSync(join(work, `part-${at}`), String(at));
    if (at === 1) writeFileSync(join(work, "broken"), "yes");
    git("add", "-A");
    git("commit", "-q", "-m", "A change");
    git("push", "-q", bare, `change-${at}`);
  });
  box("migrate", "up");
  const token = (name, ...more) => JSON.parse(box("token", "create", "--org", "acme", "--name", name, ...(more.includes("--scope") ? [] : ["--scope", "all"]), "--json", ...more)).token;
  const tokens = {
    admin: token(hostile ? HOSTILE.slice(0, 60) : "ada"),
    viewer: token("viewer", "--scope", "queue:read", "--scope", "tests:read"),
    other: JSON.parse(box("token", "create", "--org", "other", "--name", "mallory", "--scope", "all", "--json")).token,
  };
  box("repo", "add", REPO, "--org", "acme");
  const numbers = titles.map((title, at) => JSON.parse(box("pr", "open", REPO, "--branch", `change-${at}`, "--title", title, "--json", ...(hostile ? ["--author", HOSTILE] : ["--author", ["ada", "grace", "linus"][at % 3]]))).number);

  // The checks of these servers are the tests' own.
  const env = { ...process.env, SIGNALBOX_SANDBOX__UNSAFE_LOCAL: "true" };
  const server = spawn(BINARY, ["--config", config, "serve"], { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
  process.once("exit", () => server.kill("SIGKILL"));
  let log = "";
  server.stdout.on("data", (data) => { log += data; });
  server.stderr.on("data", (data) => { log += data; });
  const until = async (what, test, seconds = 30) => {
    const end = Date.now() + seconds * 1000;
    for (;;) {
      if (await test().catch(() => false)) return;
      if (Date.now() > end) throw new Error(`${what} did not come\n${log.slice(-2000)}`);
      await new Promise((done) => setTimeout(done, 100));
    }
  };
  await until("the server", async () => (await fetch(`${url}/readyz`)).ok);

  const repo = { host: "git.local", owner: "acme", name: "calc" };
  const call = async (operation, body) => {
    const reply = await fetch(`${url}/v1/${operation}`, {
      method: "POST",
      headers: { "x-api-token": tokens.admin, "content-type": "application/json" },
      body: JSON.stringify({ repo, targetBranch: "main", ...body }),
    });
    const text = await reply.text();
    if (!reply.ok) throw new Error(`${operation}: ${reply.status} ${text}`);
    return text ? JSON.parse(text) : {};
  };
  await call("createQueue", { mode: "single", concurrency: 2 });
  await call("createQueue", { targetBranch: "quiet" });
  if (hostile) await call("createQueue", { targetBranch: ODD_BRANCH });
  if (hostile) await call("updateQueue", { targetBranch: "quiet", state: "PAUSED", reason: HOSTILE });
  for (const number of numbers.slice(0, -1)) await call("submitPullRequest", { pr: { number }, priority: number === numbers[2] ? "high" : "medium" });
  await until("a test", async () => (await call("getSubmittedPullRequest", { pr: { number: numbers[0] } })).state === "TESTING");

  let runs = 0;
  const upload = async (sha, failing) => {
    const name = hostile ? HOSTILE.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;") : "test_sum_of_halves";
    const text = hostile ? name : "assertion failed: 0.5 + 0.5 = 1.0000001";
    const cases = [`<testcase name="${name}" classname="calc" file="tests/test_calc.py" time="0.2">${failing ? `<failure message="${text}">${text}</failure>` : ""}</testcase>`,
      `<testcase name="test_add" classname="calc" file="tests/test_calc.py" time="0.01"/>`];
    const query = new URLSearchParams({ repo: REPO, sha, branch: "main", job: hostile ? HOSTILE : "unit tests", job_url: hostile && runs ? "javascript:alert(7)" : `https://ci.example/${runs += 1}` });
    const reply = await fetch(`${url}/v1/flaky-tests/upload?${query}`, {
      method: "POST",
      headers: { "x-api-token": tokens.admin, "content-type": "application/xml" },
      body: `<testsuites><testsuite name="calc">${cases.join("")}</testsuite></testsuites>`,
    });
    if (!reply.ok) throw new Error(`upload: ${reply.status} ${await reply.text()}`);
  };
  let test = null;
  const read = async () => {
    const reply = await fetch(`${url}/v1/flaky-tests/list-unhealthy-tests`, {
      method: "POST",
      headers: { "x-api-token": tokens.admin, "content-type": "application/json" },
      body: JSON.stringify({ repo, org_url_slug: "acme", status: "FLAKY", page_query: { page_size: 10, page_token: "" } }),
    });
    const json = await reply.json();
    test = json.tests?.[0]?.html_url ?? json.tests?.[0]?.id ?? null;
    return test !== null;
  };
  for (const failing of [true, false, true]) await upload("a".repeat(40), failing);
  await until("a flaky test", read, 40).catch((error) => { if (!nice) throw error; });

  // Another server on the same database.
  const second = async () => {
    const other = await free();
    const file = join(folder, "second.toml");
    const text = readFileSync(config, "utf8").replaceAll(`127.0.0.1:${port}`, `127.0.0.1:${other}`);
    writeFileSync(file, text.replace(`${folder}/data`, `${folder}/data-second`));
    // All servers on a database have one key for the secrets of webhooks.
    mkdirSync(join(folder, "data-second"), { recursive: true });
    copyFileSync(join(folder, "data", "webhooks.key"), join(folder, "data-second", "webhooks.key"));
    const child = spawn(BINARY, ["--config", file, "serve"], { cwd: folder, env, stdio: "ignore" });
    process.once("exit", () => child.kill("SIGKILL"));
    const at = `http://127.0.0.1:${other}`;
    await until("the second server", async () => (await fetch(`${at}/readyz`)).ok);
    const stop = () => new Promise((done) => { child.once("exit", done); child.kill("SIGTERM"); setTimeout(() => child.kill("SIGKILL"), 8000).unref(); });
    return { url: at, stop };
  };

  return {
    second, upload, url, tokens, numbers, call, box, until, git, folder,
    test: test && new URL(test, url).pathname + new URL(test, url).search,
    queue: `/acme/queue?repo=${encodeURIComponent(REPO)}&branch=main`,
    quiet: `/acme/queue?repo=${encodeURIComponent(REPO)}&branch=quiet`,
    pr: (number) => `/acme/queue/pr?repo=${encodeURIComponent(REPO)}&branch=main&pr=${number}`,
    output: async (number) => {
      const { testRunId } = await call("getSubmittedPullRequest", { pr: { number } });
      return `/acme/queue/output?repo=${encodeURIComponent(REPO)}&branch=main&run=${testRunId}&check=unit%20tests`;
    },
    odd: (page) => `/acme/${page}?repo=${encodeURIComponent(REPO)}&branch=${encodeURIComponent(ODD_BRANCH)}`,
    page: (page) => `/acme/${page}?repo=${encodeURIComponent(REPO)}&branch=main`,
    open: () => writeFileSync(gate, ""),
    log: () => log,
    async stop() {
      writeFileSync(gate, "");
      server.kill("SIGTERM");
      await new Promise((done) => { server.once("exit", done); setTimeout(() => { server.kill("SIGKILL"); }, 8000).unref(); });
      if (existsSync(folder)) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
