// Starts an emulator of the host that others wrote, with a repository, an app and pull requests.
// Argument: the folder of the emulator. Prints where it is and the app's key, and runs until its
// input ends.
const { createEmulator } = await import(`${process.argv[2]}/node_modules/emulate/dist/api.js`);
import net from "node:net";
const free = () => new Promise((found) => {
  const server = net.createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address();
    server.close(() => found(port));
  });
});
const permissions = {
  contents: "write", pull_requests: "write", issues: "write", statuses: "write", checks: "write",
  metadata: "read", administration: "read", actions: "read",
};
const emulator = await createEmulator({
  service: "github",
  port: await free(),
  seed: {
    tokens: { "ghp_for_tests_only": { login: "acme", scopes: ["repo"] } },
    github: {
      users: [{ login: "acme", name: "Ada", email: "ada@example.org" }],
      repos: [{ owner: "acme", name: "calc", auto_init: true }],
      apps: [{
        app_id: 12345, slug: "signalbox", name: "Signalbox", permissions,
        events: ["pull_request", "check_run"],
        installations: [{ installation_id: 100, account: "acme", repository_selection: "all" }],
      }],
    },
  },
});
const key = emulator.generatedSecrets.find((it) => it.kind === "github.app_private_key").value;
console.log(JSON.stringify({ url: emulator.url, key }));
process.stdin.resume();
process.stdin.on("end", () => emulator.close().then(() => process.exit(0)));
