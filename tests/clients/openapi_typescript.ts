// A pull request through the queue, with the types of openapi-typescript.
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

declare const process: { env: Record<string, string> };

const { SIGNALBOX_URL: baseUrl, SIGNALBOX_TOKEN: token, SIGNALBOX_PR: pr } = process.env;
const client = createClient<paths>({ baseUrl, headers: { "x-api-token": token } });
const place = {
  repo: { host: "git.local", owner: "acme", name: "calc" },
  targetBranch: "main",
};

function check(holds: boolean, what: unknown): void {
  if (!holds) throw new Error(JSON.stringify(what));
}

const body = { ...place, pr: { number: Number(pr) } };
const submitted = await client.POST("/v1/submitPullRequest", { body: { ...body, priority: "high" } });
check(submitted.response.status === 200, submitted.error);

for (;;) {
  const { data, error } = await client.POST("/v1/getSubmittedPullRequest", {
    body: { ...body, includeTimeline: true },
  });
  if (data === undefined) throw new Error(JSON.stringify(error));
  check(data.state !== "FAILED" && data.state !== "CANCELLED", data);
  if (data.state === "MERGED") {
    const steps = data.timeline ?? [];
    check(steps.some((it) => it.testsPassed !== undefined), steps);
    check(steps[0]?.merged?.reason !== undefined, steps);
    break;
  }
  await new Promise((resolve) => setTimeout(resolve, 100));
}

const missing = await client.POST("/v1/getSubmittedPullRequest", {
  body: { ...place, pr: { number: 4_294_967_295 } },
});
check(missing.response.status === 404 && missing.data === undefined, missing);

const queues = await client.POST("/v1/listQueues", { body: {} });
check(queues.data?.queues.length === 1, queues);

const tests = await client.POST("/v1/flaky-tests/list-quarantined-tests", {
  body: { repo: place.repo, org_url_slug: "acme", page_query: { page_size: 10 } },
});
check(tests.data?.page.next_page_token === "", tests);
