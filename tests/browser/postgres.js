// A PostgreSQL server for one run, as the tests in Rust start it. Null when there is none to be had.
import { execFileSync } from "node:child_process";
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { free } from "./world.js";

const folders = () => {
  const root = "/usr/lib/postgresql";
  const versions = existsSync(root) ? readdirSync(root).sort((a, b) => Number(b) - Number(a)) : [];
  return [...(process.env.PATH ?? "").split(":"), ...versions.map((it) => join(root, it, "bin"))];
};

export async function postgres() {
  if (process.env.SIGNALBOX_TEST_POSTGRES_URL) {
    const base = process.env.SIGNALBOX_TEST_POSTGRES_URL;
    const name = `signalbox_browser_${process.pid}`;
    const psql = (text) => execFileSync("psql", ["-q", "-X", "-d", base, "-c", text], { stdio: "pipe" });
    psql(`CREATE DATABASE ${name}`);
    const url = new URL(base);
    url.pathname = `/${name}`;
    return { url: url.href, stop: () => psql(`DROP DATABASE ${name} WITH (FORCE)`) };
  }
  const bin = folders().find((it) => it && existsSync(join(it, "initdb")));
  if (!bin) return null;
  const folder = mkdtempSync(join(tmpdir(), "signalbox-browser-pg-"));
  const data = join(folder, "data");
  mkdirSync(data);
  const root = process.getuid() === 0;
  const run = (program, ...args) => {
    const command = [join(bin, program), ...args];
    const whole = root ? ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", ...command] : command;
    return execFileSync(whole[0], whole.slice(1), { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  };
  if (root) {
    const id = (flag) => Number(execFileSync("id", [flag, "postgres"]).toString());
    for (const it of [folder, data]) chownSync(it, id("-u"), id("-g"));
  }
  const port = await free();
  run("initdb", "-A", "trust", "-N", "-U", "postgres", "-D", data);
  run("pg_ctl", "-w", "-D", data, "-l", join(folder, "log"), "-o", `-p ${port} -k ${folder} -c listen_addresses=127.0.0.1 -c fsync=off`, "start");
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    stop() {
      run("pg_ctl", "-m", "immediate", "-D", data, "stop");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
