// Keeps the parts of the fetched packages that tests look at.
const fs = require("node:fs");
const wanted = /^\/(apps?|user|repos\/\{owner\}\/\{repo\})(\/|$)|^\/app$/;
const requests = {};
for (const edition of ["api.github.com", "ghes-3.17"]) {
  const file = `node_modules/@octokit/openapi/generated/${edition}.deref.json`;
  const paths = JSON.parse(fs.readFileSync(file, "utf8")).paths;
  requests[edition] = {};
  for (const [path, operations] of Object.entries(paths)) {
    if (!wanted.test(path)) continue;
    for (const [method, operation] of Object.entries(operations)) {
      if (!operation.operationId) continue;
      const parameters = (operation.parameters || []).map(({ name, in: place, required, schema }) =>
        ({ name, in: place, required: Boolean(required), schema }));
      const body = operation.requestBody?.content?.["application/json"]?.schema ?? null;
      const statuses = Object.keys(operation.responses);
      requests[edition][`${method.toUpperCase()} ${path}`] =
        { id: operation.operationId, parameters, body, statuses,
          bodyRequired: Boolean(operation.requestBody?.required) };
    }
  }
}
fs.writeFileSync("requests.json", JSON.stringify(requests));
fs.copyFileSync("node_modules/@octokit/webhooks-examples/api.github.com/index.json", "webhooks.json");
