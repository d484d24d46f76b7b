// A pull request through the queue, with the client of @hey-api/openapi-ts.
import { client } from "./hey/client.gen.js";
import { getQueue, getSubmittedPullRequest, submitPullRequest } from "./hey/index.js";

declare const process: { env: Record<string, string> };

const { SIGNALBOX_URL: baseUrl, SIGNALBOX_TOKEN: token, SIGNALBOX_PR: pr } = process.env;
client.setConfig({ baseUrl, auth: token });
const place = {
  repo: { host: "git.local", owner: "acme", name: "calc" },
  targetBranch: "main",
};

function check(holds: boolean, what: unknown): void {
  if (!holds) throw new Error(JSON.stringify(what));
}

const body = { ...place, pr: { number: Number(pr) } };
const submitted = await submitPullRequest({ body });
check(submitted.response?.status === 200, submitted.error);

for (;;) {
  const { data, error } = await getSubmittedPullRequest({ body });
  if (data === undefined) throw new Error(JSON.stringify(error));
  check(data.state !== "FAILED" && data.state !== "CANCELLED", data);
  if (data.state === "MERGED") break;
  await new Promise((resolve) => setTimeout(resolve, 100));
}

const queue = await getQueue({ body: place });
check(queue.data?.mode === "SINGLE" && queue.data?.concurrency === 2, queue);
