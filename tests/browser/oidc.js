// Journeys through signing in with an identity provider: a certified one, run here.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { free } from "./world.js";

const PEOPLE = {
  ada: { name: "Ada", email: "ada@example.org", email_verified: true, groups: ["staff", "release"] },
  grace: { name: "Grace", email: "grace@example.org", email_verified: true, groups: ["staff"] },
  eve: { name: "Eve", email: "eve@elsewhere.example", email_verified: true, groups: ["staff"] },
  mallory: { name: "<script>alert(4)</script>", email: "ada@example.org", email_verified: false, groups: ["staff", "release"] },
};

// A provider with those people. Its own pages for signing in are what its authors ship.
export async function provider(back) {
  const { Provider } = await import("oidc-provider");
  const port = await free();
  const issuer = `http://127.0.0.1:${port}`;
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const oidc = new Provider(issuer, {
    clients: [{ client_id: "signalbox", client_secret: "a secret of the tests", redirect_uris: [back] }],
    claims: { openid: ["sub", "groups"], profile: ["name"], email: ["email", "email_verified"] },
    conformIdTokenClaims: false,
    cookies: { keys: ["only for tests"] },
    features: { devInteractions: { enabled: true } },
    jwks: { keys: [{ ...privateKey.export({ format: "jwk" }), kid: "one", use: "sig", alg: "RS256" }] },
    pkce: { required: () => true },
    async findAccount(_, id) {
      return { accountId: id, claims: async () => ({ sub: id, ...PEOPLE[id] }) };
    },
  });
  const server = createServer(oidc.callback());
  await new Promise((done) => server.listen(port, "127.0.0.1", done));
  return { issuer, stop: () => { server.closeAllConnections(); server.close(); } };
}

export const settings = (folder, issuer) => {
  const file = join(folder, "oidc-secret");
  writeFileSync(file, "a secret of the tests\n");
  return `
[oidc]
issuer = "${issuer}"
client_id = "signalbox"
client_secret_file = "${file}"
organization = "acme"
label = "the tests"
allowed_domains = ["example.org"]
allowed_groups = ["staff"]
admin_groups = ["release"]
`;
};

export async function oidc({ test, one, open }) {
  const enter = async (page, who, path = "/") => {
    await page.goto(`${one.url}/sign-in?next=${encodeURIComponent(path)}`);
    await page.getByRole("link", { name: "Sign in with the tests" }).click();
    await page.locator("input[name=login]").fill(who);
    await page.locator("input[name=password]").fill("any");
    await page.locator("button[type=submit]").click();
    await page.locator("button[type=submit]").click();
    await page.waitForURL((at) => at.origin === one.url);
  };
  await test("a user of the right group signs in as an admin and returns to the requested page", async () => {
    const page = await open();
    await enter(page, "ada", "/acme/tokens");
    assert.equal(await page.locator(".who .chip").innerText(), "admin");
    assert.equal(new URL(page.url()).pathname, "/acme/tokens");
    await page.getByText("ada@example.org (signed in)").first().waitFor();
    const cookies = (await page.context().cookies()).filter((it) => it.name.startsWith("signalbox"));
    assert.deepEqual(cookies.map((it) => [it.name, it.httpOnly, it.sameSite]), [["signalbox", true, "Lax"]]);
    await page.goto(`${one.url}/acme/audit`);
    await page.getByText(/signed in as admin/i).first().waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.waitForURL(/sign-in/);
    await page.context().addCookies(cookies);
    assert.equal((await page.goto(`${one.url}/`)).status(), 401, "the session has ended");
    await page.context().close();
  });
  await test("a user of another group can read", async () => {
    const page = await open();
    await enter(page, "grace");
    assert.equal(await page.locator(".who .chip").innerText(), "viewer");
    assert.equal((await page.goto(`${one.url}/acme/tokens`)).status(), 403);
    await page.context().close();
  });
  await test("a user of another domain may not sign in", async () => {
    for (const who of ["eve", "mallory"]) {
      const page = await open();
      await enter(page, who);
      await page.getByRole("heading", { name: "You may not sign in" }).waitFor();
      await page.getByText(/verified address of example.org/).waitFor();
      assert.equal((await page.goto(`${one.url}/`)).status(), 401);
      await page.context().close();
    }
  });
  await test("a sign-in that was started elsewhere or modified is refused", async () => {
    const page = await open();
    const reply = await page.goto(`${one.url}/sign-in/back?code=stolen&state=made-up`);
    assert.equal(reply.status(), 400);
    await page.getByText(/not started in this browser/).waitFor();
    await page.goto(`${one.url}/sign-in`);
    await page.getByRole("link", { name: "Sign in with the tests" }).click();
    await page.locator("input[name=login]").waitFor();
    const kept = (await page.context().cookies()).find((it) => it.name === "signalbox-leaving");
    assert.ok(kept.httpOnly && kept.sameSite === "Lax");
    const state = kept.value.split(".")[0];
    const back = (code, it) => `${one.url}/sign-in/back?code=${code}&state=${it}`;
    assert.equal((await page.goto(back("any", "another"))).status(), 400, "another state");
    const other = await open();
    assert.equal((await other.goto(back("any", state))).status(), 400, "another browser");
    assert.equal((await page.goto(back("another", state))).status(), 403, "another code");
    await page.getByRole("heading", { name: "You may not sign in" }).waitFor();
    await other.context().close();
    await page.context().close();
  });
}
