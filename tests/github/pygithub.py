"""A public client library uses the double as it would use the host. Arguments: the folder of the
library, the API's address, a token. Prints what it saw."""
import json
import sys

sys.path.insert(0, sys.argv[1] + "/python")
import github  # noqa: E402

client = github.Github(base_url=sys.argv[2], auth=github.Auth.Token(sys.argv[3]), retry=None,
                       seconds_between_requests=0, seconds_between_writes=0)
repo = client.get_repo("acme/calc")
seen = {"repository": repo.full_name}
main = repo.get_branch("main").commit.sha
seen["main"] = main
pull = repo.create_pull(base="main", head="topic", title="By PyGithub")
while repo.get_pull(pull.number).mergeable is None:
    pass
head = repo.get_pull(pull.number).head.sha
seen["listed"] = [it.number for it in repo.get_pulls()]
commit = repo.get_git_commit(head)
repo.get_commit(head).create_status("success", context="by-pygithub")
combined = repo.get_commit(head).get_combined_status()
seen["statuses"] = [f"{it.context}: {it.state}" for it in combined.statuses]
note = pull.create_issue_comment("one")
note.edit("two")
seen["comments"] = [it.body for it in pull.get_issue_comments()]
pull.add_to_labels("queued")
seen["labels"] = [it.name for it in pull.get_labels()]
ref = repo.create_git_ref("refs/heads/bench", main)
merged = repo.merge("bench", head)
made = repo.create_git_commit("squashed", repo.get_git_tree(merged.commit.tree.sha),
                              [repo.get_git_commit(main)])
ref.edit(made.sha, force=True)
seen["bench"] = repo.get_git_ref("heads/bench").object.sha == made.sha
compared = repo.compare(main, made.sha)
seen["compared"] = [compared.status, compared.ahead_by, [it.filename for it in compared.files]]
ref.delete()


def fails(call):
    try:
        call()
        return 0
    except github.GithubException as error:
        return error.status


seen["gone"] = fails(lambda: repo.get_git_ref("heads/bench"))
seen["wrong_head"] = fails(lambda: pull.merge(merge_method="squash", sha=main))
landed = pull.merge(merge_method="squash", sha=head)
seen["landed"] = landed.sha
seen["merged"] = repo.get_pull(pull.number).merged
print(json.dumps(seen))
