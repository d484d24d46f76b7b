// Turns recorded traffic of two client libraries into one list of exchanges: method, path, query,
// status, headers, body. Arguments: the folder with the unpacked libraries, and a YAML package.
const fs = require("node:fs");
const path = require("node:path");
const zlib = require("node:zlib");
const [folder, yamlPackage] = process.argv.slice(2);
const yaml = require(path.resolve(yamlPackage));

// What our adapter asks for too, and every refusal.
const wanted =
  /^\/repos\/[^/]+\/[^/]+(\/(pulls\/\d+|branches\/.+|collaborators\/[^/]+\/permission|issues\/comments\/\d+|issues\/\d+\/labels|commits\/[0-9a-f]{40}\/(check-runs|status)))?$/;
const exchanges = [];
function keep(method, address, status, headers, body) {
  const url = new URL(address);
  if (url.hostname !== "api.github.com" || !status) return;
  if (status < 400 && !(method === "GET" && wanted.test(url.pathname))) return;
  const kept = {};
  for (const [name, value] of Object.entries(headers || {})) {
    kept[name.toLowerCase()] = Array.isArray(value) ? value.join(", ") : String(value);
  }
  exchanges.push({ method, path: url.pathname, query: url.search.slice(1), status, headers: kept, body });
}
function parsed(text) {
  try { return JSON.parse(text); } catch { return null; }
}
function files(where, ending) {
  return fs.readdirSync(where, { withFileTypes: true, recursive: true })
    .filter((it) => it.isFile() && it.name.endsWith(ending))
    .map((it) => path.join(it.parentPath ?? it.path, it.name)).sort();
}
const roots = fs.readdirSync(folder);
const root = (start) => path.join(folder, roots.find((it) => it.startsWith(start) && !it.endsWith(".gz")));

for (const file of files(path.join(root("github3"), "tests", "cassettes"), ".json")) {
  for (const { request, response } of JSON.parse(fs.readFileSync(file, "utf8")).http_interactions) {
    const { body } = response;
    let bytes = Buffer.from(body.base64_string ?? "", "base64");
    if (bytes[0] === 0x1f && bytes[1] === 0x8b) bytes = zlib.gunzipSync(bytes);
    const text = body.base64_string ? bytes.toString("utf8") : body.string ?? "";
    const status = response.status?.code ?? response.status_code;
    keep(request.method, request.uri, status, response.headers, parsed(text));
  }
}
for (const file of files(path.join(root("ogr"), "tests", "integration", "github", "test_data"), ".yaml")) {
  const document = yaml.parse(fs.readFileSync(file, "utf8"), { logLevel: "silent", maxAliasCount: -1 });
  for (const [method, addresses] of Object.entries(document?.["requests.sessions"]?.send ?? {})) {
    for (const [address, items] of Object.entries(addresses ?? {})) {
      if (!Array.isArray(items)) continue;
      for (const { output } of items) {
        const content = output?._content;
        const body = typeof content === "string" ? parsed(content) : content ?? null;
        keep(method, address, output?.status_code, output?.headers, body);
      }
    }
  }
}
process.stdout.write(JSON.stringify(exchanges));
