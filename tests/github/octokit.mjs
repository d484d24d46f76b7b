// A public client library uses the double as it would use the host. Arguments: the folder of the
// library, the API's address, a token. Prints what it saw.
const [folder, baseUrl, auth] = process.argv.slice(2);
const { Octokit } = await import(`${folder}/node_modules/@octokit/rest/dist-src/index.js`);
const client = new Octokit({ baseUrl, auth, log: { debug() {}, info() {}, warn() {}, error() {} } });
const repo = { owner: "acme", repo: "calc" };
const seen = {};

seen.repository = (await client.repos.get(repo)).data.full_name;
const main = (await client.repos.getBranch({ ...repo, branch: "main" })).data.commit.sha;
seen.main = main;
const pull = (await client.pulls.create({ ...repo, head: "topic", base: "main", title: "By octokit" })).data;
let read = (await client.pulls.get({ ...repo, pull_number: pull.number })).data;
seen.first_mergeable = read.mergeable;
while (read.mergeable === null) read = (await client.pulls.get({ ...repo, pull_number: pull.number })).data;
seen.mergeable = read.mergeable;
seen.listed = (await client.paginate(client.pulls.list, { ...repo, per_page: 1 })).map((it) => it.number);
const status = { ...repo, sha: read.head.sha, state: "success", context: "by-octokit" };
await client.repos.createCommitStatus(status);
const combined = await client.repos.getCombinedStatusForRef({ ...repo, ref: read.head.sha });
seen.statuses = combined.data.statuses.map((it) => `${it.context}: ${it.state}`);
const note = (await client.issues.createComment({ ...repo, issue_number: pull.number, body: "one" })).data;
await client.issues.updateComment({ ...repo, comment_id: note.id, body: "two" });
const notes = await client.issues.listComments({ ...repo, issue_number: pull.number });
seen.comments = notes.data.map((it) => it.body);
await client.issues.addLabels({ ...repo, issue_number: pull.number, labels: ["queued"] });
seen.labels = (await client.issues.listLabelsOnIssue({ ...repo, issue_number: pull.number })).data.map((it) => it.name);
await client.git.createRef({ ...repo, ref: "refs/heads/bench", sha: main });
const merged = (await client.repos.merge({ ...repo, base: "bench", head: read.head.sha })).data;
seen.merge_parents = merged.parents.map((it) => it.sha);
const made = (await client.git.createCommit({
  ...repo, message: "squashed", tree: merged.commit.tree.sha, parents: [main],
})).data;
await client.git.updateRef({ ...repo, ref: "heads/bench", sha: made.sha, force: true });
seen.bench = (await client.git.getRef({ ...repo, ref: "heads/bench" })).data.object.sha === made.sha;
const compared = await client.repos.compareCommitsWithBasehead({ ...repo, basehead: `${main}...${made.sha}` });
seen.compared = [compared.data.status, compared.data.ahead_by, compared.data.files.map((it) => it.filename)];
await client.git.deleteRef({ ...repo, ref: "heads/bench" });
const fails = async (call) => { try { await call; return 0; } catch (error) { return error.status; } };
seen.gone = await fails(client.git.getRef({ ...repo, ref: "heads/bench" }));
const merge = { ...repo, pull_number: pull.number, merge_method: "squash" };
seen.wrong_head = await fails(client.pulls.merge({ ...merge, sha: main }));
const landed = (await client.pulls.merge({ ...merge, sha: read.head.sha })).data;
seen.landed = landed.sha;
seen.merged = (await client.pulls.get({ ...repo, pull_number: pull.number })).data.merged;
console.log(JSON.stringify(seen));
