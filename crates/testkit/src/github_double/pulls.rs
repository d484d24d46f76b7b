//! Pull requests.

use serde_json::{Value, json};

use super::state::{Asked, Pull, Reply, State};

impl State {
    fn pull_json(&self, number: u64, pull: &Pull, mergeable: Option<bool>) -> Value {
        let state = if pull.open { "open" } else { "closed" };
        let head_owner = pull.fork.as_deref().unwrap_or(&self.owner);
        let word = match mergeable {
            None => "unknown",
            Some(false) => "dirty",
            Some(true) if pull.blocked => "blocked",
            Some(true) if pull.draft => "draft",
            Some(true) => "clean",
        };
        json!({
            "id": number, "number": number, "title": pull.title, "body": pull.body,
            "state": state, "draft": pull.draft, "merged": pull.merged, "mergeable": mergeable,
            "mergeable_state": word, "merged_at": pull.merged.then_some("2026-01-01T00:00:00Z"),
            "user": {"login": pull.author, "id": 9},
            "url": self.url(&format!("/pulls/{number}")),
            "issue_url": self.url(&format!("/issues/{number}")),
            "html_url": format!("https://github.example/{}/pull/{number}", self.full_name()),
            "head": {"ref": pull.head_ref, "sha": pull.head,
                "repo": {"full_name": format!("{head_owner}/{}", self.name)}},
            "base": {"ref": pull.base, "sha": self.git.branch(&pull.base),
                "repo": {"full_name": self.full_name()}},
            "comments": self.notes.values().filter(|note| note.issue == number).count(),
            "labels": pull.labels.iter().map(|it| json!({"name": it})).collect::<Vec<_>>(),
        })
    }

    pub(super) fn emit_pull(&mut self, number: u64, action: &str) {
        let Some(pull) = self.pulls.get(&number).cloned() else { return };
        let shown = self.pull_json(number, &pull, None);
        let payload = json!({"action": action, "number": number, "pull_request": shown});
        self.tell("pull_request", payload);
    }

    /// pulls/get: mergeability is computed after the first read, and again after either side has
    /// moved.
    pub(super) fn get_pull(&mut self, number: u64) -> Reply {
        let null_reads = self.null_reads;
        let Some(pull) = self.pulls.get_mut(&number) else { return Reply::not_found() };
        let base = self.git.branch(&pull.base).unwrap_or_default();
        let now = (pull.head.clone(), base.clone());
        if pull.computed.as_ref() != Some(&now) {
            pull.computed = Some(now);
            pull.nulls_left = null_reads;
        }
        let mergeable = if !pull.open {
            None
        } else if pull.nulls_left > 0 {
            pull.nulls_left -= 1;
            None
        } else {
            Some(self.git.merged_tree(&base, &pull.head).is_some())
        };
        let pull = pull.clone();
        Reply::new(200, self.pull_json(number, &pull, mergeable))
    }

    /// pulls/list
    pub(super) fn list_pulls(&self, asked: &Asked) -> Reply {
        let head = asked.query.get("head").and_then(|it| it.split_once(':'));
        let all = asked.query.get("state").is_some_and(|it| it == "all");
        let wanted = |pull: &&Pull| {
            let owner = pull.fork.as_deref().unwrap_or(&self.owner);
            (all || pull.open) && head.is_none_or(|(of, name)| of == owner && name == pull.head_ref)
        };
        let found = self.pulls.iter().rev().filter(|(_, pull)| wanted(pull));
        let items = found.map(|(number, pull)| self.pull_json(*number, pull, None)).collect();
        asked.page(items, |it| it)
    }

    /// Opens a pull request; the head is a branch of the repository, or a commit that a fork has
    /// pushed.
    pub(super) fn open(&mut self, pull: Pull) -> u64 {
        self.last_number += 1;
        let number = self.last_number;
        self.git.set_ref(&format!("refs/pull/{number}/head"), &pull.head);
        self.pulls.insert(number, pull);
        self.emit_pull(number, "opened");
        number
    }

    /// pulls/create
    pub(super) fn create_pull(&mut self, asked: &Asked) -> Reply {
        let (head_ref, base) = (asked.text("head").to_owned(), asked.text("base").to_owned());
        let (Some(head), Some(onto)) = (self.git.branch(&head_ref), self.git.branch(&base)) else {
            return Reply::error(422, "Validation Failed");
        };
        if self.pulls.values().any(|it| it.open && it.head_ref == head_ref && it.base == base) {
            let words = format!("A pull request already exists for {}:{head_ref}.", self.owner);
            let errors = json!([{"message": words}]);
            return Reply::new(422, json!({"message": "Validation Failed", "errors": errors}));
        }
        if self.git.is_ancestor(&head, &onto) {
            let errors = json!([{"message": format!("No commits between {base} and {head_ref}")}]);
            return Reply::new(422, json!({"message": "Validation Failed", "errors": errors}));
        }
        let number = self.open(Pull {
            title: asked.text("title").to_owned(),
            body: asked.body["body"].as_str().map(ToOwned::to_owned),
            author: asked.login.clone(),
            head_ref,
            head,
            fork: None,
            base,
            open: true,
            merged: false,
            draft: asked.body["draft"].as_bool().unwrap_or(false),
            blocked: false,
            labels: std::collections::BTreeSet::new(),
            computed: None,
            nulls_left: 0,
        });
        let pull = self.pulls[&number].clone();
        Reply::new(201, self.pull_json(number, &pull, None))
    }

    /// Closes an open pull request.
    pub(super) fn close(&mut self, number: u64) {
        let Some(pull) = self.pulls.get_mut(&number).filter(|it| it.open) else { return };
        pull.open = false;
        self.emit_pull(number, "closed");
    }

    /// pulls/update
    pub(super) fn update_pull(&mut self, asked: &Asked, number: u64) -> Reply {
        let Some(pull) = self.pulls.get(&number) else { return Reply::not_found() };
        if pull.merged && asked.text("state") == "open" {
            return Reply::error(422, "Validation Failed");
        }
        if asked.text("state") == "closed" {
            self.close(number);
        }
        let pull = self.pulls[&number].clone();
        Reply::new(200, self.pull_json(number, &pull, None))
    }

    /// pulls/merge
    pub(super) fn merge_pull(&mut self, asked: &Asked, number: u64) -> Reply {
        let Some(pull) = self.pulls.get(&number).cloned() else { return Reply::not_found() };
        if !pull.open || pull.draft || pull.blocked {
            return Reply::error(405, "Pull Request is not mergeable");
        }
        if !matches!(asked.text("sha"), "") && asked.text("sha") != pull.head {
            return Reply::error(409, "Head branch was modified. Review and try the merge again.");
        }
        let base = self.git.branch(&pull.base).expect("a base");
        let Some(tree) = self.git.merged_tree(&base, &pull.head) else {
            return Reply::error(405, "Pull Request is not mergeable");
        };
        let title = match asked.text("commit_title") {
            "" => pull.title.as_str(),
            title => title,
        };
        let parents = match asked.text("merge_method") {
            "squash" | "rebase" => vec![base],
            _ => vec![base, pull.head.clone()],
        };
        let author = Some((pull.author.as_str(), "author@github.example", None));
        let made = self.git.commit_tree(&tree, &parents, title, author).expect("a commit");
        if let Some(pull) = self.pulls.get_mut(&number) {
            (pull.open, pull.merged) = (false, true);
        }
        let name = format!("refs/heads/{}", pull.base);
        self.git.set_ref(&name, &made);
        self.emit_pull(number, "closed");
        self.ref_moved(&name, &made);
        Reply::new(
            200,
            json!({"sha": made, "merged": true, "message": "Pull Request successfully merged"}),
        )
    }
}
