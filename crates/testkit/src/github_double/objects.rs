//! Refs, commits, merges, comparisons, contents.

use serde_json::{Value, json};

use super::state::{Asked, Reply, State, WrongMerge};

impl State {
    pub(super) fn commit_json(&self, commit: &str) -> Value {
        let format = "--format=%P%x00%T%x00%an%x00%ae%x00%aI%x00%cn%x00%ce%x00%cI%x00%B";
        let shown = self.git.must(&["show", "-s", format, commit]);
        let parts: Vec<&str> = shown.splitn(9, '\0').collect();
        let [parents, tree, author @ .., message] = parts.as_slice() else {
            panic!("{commit}: {shown:?}");
        };
        let signature = |it: &[&str]| json!({"name": it[0], "email": it[1], "date": it[2]});
        let parents: Vec<Value> =
            parents.split_whitespace().map(|sha| json!({"sha": sha})).collect();
        json!({
            "sha": commit,
            "commit": {
                "tree": {"sha": tree}, "message": message.trim_end(),
                "author": signature(&author[..3]), "committer": signature(&author[3..]),
            },
            "author": null, "committer": null, "parents": parents,
        })
    }

    fn git_commit_json(&self, commit: &str) -> Value {
        let listed = self.commit_json(commit);
        let mut flat = listed["commit"].clone();
        flat["sha"] = json!(commit);
        flat["parents"] = listed["parents"].clone();
        flat
    }

    /// repos/get-branch
    pub(super) fn branch(&self, name: &str) -> Reply {
        match self.git.branch(name) {
            Some(sha) => Reply::new(
                200,
                json!({
                    "name": name, "commit": self.commit_json(&sha),
                    "protected": self.guarded.contains(name),
                }),
            ),
            None => Reply::error(404, "Branch not found"),
        }
    }

    fn ref_json(&self, name: &str, sha: &str) -> Value {
        let url = self.url(&format!("/git/{name}"));
        json!({"ref": name, "node_id": "x", "url": url, "object": {"sha": sha, "type": "commit"}})
    }

    /// git/get-ref
    pub(super) fn get_ref(&self, name: &str) -> Reply {
        let full = format!("refs/{name}");
        match self.git.resolve(&full) {
            Some(sha) => Reply::new(200, self.ref_json(&full, &sha)),
            None => Reply::not_found(),
        }
    }

    /// git/list-matching-refs
    pub(super) fn matching_refs(&self, asked: &Asked, prefix: &str) -> Reply {
        let listed = self.git.must(&["for-each-ref", "--format=%(refname) %(objectname)"]);
        let wanted = format!("refs/{prefix}");
        let items = listed.lines().filter_map(|line| line.split_once(' '));
        let items = items.filter(|(name, _)| name.starts_with(&wanted));
        asked.page(items.map(|(name, sha)| self.ref_json(name, sha)).collect(), |it| it)
    }

    /// git/create-ref
    pub(super) fn create_ref(&mut self, asked: &Asked) -> Reply {
        let (name, sha) = (asked.text("ref").to_owned(), asked.text("sha").to_owned());
        if self.git.resolve(&name).is_some() {
            return Reply::error(422, "Reference already exists");
        }
        if self.git.resolve(&format!("{sha}^{{commit}}")).is_none() {
            return Reply::error(422, "Object does not exist");
        }
        self.git.set_ref(&name, &sha);
        self.ref_moved(&name, &sha);
        Reply::new(201, self.ref_json(&name, &sha))
    }

    /// git/update-ref
    pub(super) fn update_ref(&mut self, asked: &Asked, name: &str) -> Reply {
        let full = format!("refs/{name}");
        let sha = asked.text("sha").to_owned();
        let Some(now) = self.git.resolve(&full) else {
            return Reply::error(422, "Reference does not exist");
        };
        if self.git.resolve(&format!("{sha}^{{commit}}")).is_none() {
            return Reply::error(422, "Object does not exist");
        }
        if self.guarded.contains(name.trim_start_matches("heads/")) {
            let words = "Repository rule violations found\n\nCannot update this protected ref.";
            return Reply::error(422, words);
        }
        let force = asked.body["force"].as_bool().unwrap_or(false);
        if !force && !self.git.is_ancestor(&now, &sha) {
            return Reply::error(422, "Update is not a fast forward");
        }
        self.git.set_ref(&full, &sha);
        self.ref_moved(&full, &sha);
        Reply::new(200, self.ref_json(&full, &sha))
    }

    /// git/delete-ref
    pub(super) fn delete_ref(&mut self, name: &str) -> Reply {
        let full = format!("refs/{name}");
        if self.git.resolve(&full).is_none() {
            return Reply::error(422, "Reference does not exist");
        }
        self.git.must(&["update-ref", "-d", &full]);
        // GitHub closes pull requests whose branch is deleted.
        let branch = name.trim_start_matches("heads/").to_owned();
        for pull in self.pulls.values_mut().filter(|it| it.fork.is_none()) {
            if pull.head_ref == branch {
                pull.open = false;
            }
        }
        Reply::new(204, Value::Null)
    }

    /// repos/merge
    pub(super) fn merge(&mut self, asked: &Asked) -> Reply {
        let base = asked.text("base").to_owned();
        let Some(ours) = self.git.branch(&base) else {
            return Reply::error(404, "Base does not exist");
        };
        let Some(theirs) = self.git.commit(asked.text("head")) else {
            return Reply::error(404, "Head does not exist");
        };
        if self.git.is_ancestor(&theirs, &ours) {
            return Reply::new(204, Value::Null);
        }
        let Some(tree) = self.git.merged_tree(&ours, &theirs) else {
            return Reply::error(409, "Merge conflict");
        };
        let tree =
            self.wrong_merge.map_or(tree.clone(), |how| self.wrong(how, &tree, &ours, &theirs));
        let message = match asked.text("commit_message") {
            "" => "Merge",
            message => message,
        };
        let parents = [ours, theirs];
        let made = self.git.commit_tree(&tree, &parents, message, None).expect("a commit");
        self.git.set_ref(&format!("refs/heads/{base}"), &made);
        self.ref_moved(&format!("refs/heads/{base}"), &made);
        Reply::new(201, self.commit_json(&made))
    }

    /// The tree of a wrong merge.
    fn wrong(&self, how: WrongMerge, right: &str, ours: &str, theirs: &str) -> String {
        match how {
            WrongMerge::Base => self.git.tree(theirs),
            WrongMerge::DropsAFile => {
                let changed = self.git.must(&["diff", "--name-only", theirs, ours]);
                let there = self.git.must(&["ls-tree", "-r", "--name-only", ours]);
                let path = there.lines().find(|path| changed.lines().any(|it| it == *path));
                let path = path.or(there.lines().next()).expect("the base has files");
                self.git.without(right, path)
            }
            WrongMerge::RevertsAhead => {
                let before = self.git.resolve(&format!("{ours}^"));
                let merged = before.and_then(|before| self.git.merged_tree(&before, theirs));
                merged.unwrap_or_else(|| self.git.tree(theirs))
            }
        }
    }

    /// git/get-commit
    pub(super) fn get_commit(&self, sha: &str) -> Reply {
        match self.git.resolve(&format!("{sha}^{{commit}}")) {
            Some(sha) => Reply::new(200, self.git_commit_json(&sha)),
            None => Reply::not_found(),
        }
    }

    /// git/create-commit
    pub(super) fn create_commit(&self, asked: &Asked) -> Reply {
        let parents = asked.body["parents"].as_array().cloned().unwrap_or_default();
        let parents: Vec<String> =
            parents.iter().filter_map(|it| it.as_str().map(ToOwned::to_owned)).collect();
        let author = &asked.body["author"];
        let author = author["name"].as_str().zip(author["email"].as_str());
        let date = asked.body["author"]["date"].as_str();
        let author = author.map(|(name, address)| (name, address, date));
        let (tree, message) = (asked.text("tree"), asked.text("message"));
        match self.git.commit_tree(tree, &parents, message, author) {
            Some(made) => Reply::new(201, self.git_commit_json(&made)),
            None => Reply::error(422, "Tree SHA is not a tree object"),
        }
    }

    /// repos/compare-commits-with-basehead
    pub(super) fn compare(&self, asked: &Asked, range: &str) -> Reply {
        let ends = range.split_once("...");
        let ends = ends.and_then(|(a, b)| self.git.commit(a).zip(self.git.commit(b)));
        let Some((from, to)) = ends else { return Reply::not_found() };
        let Some(base) = self.git.ask(&["merge-base", &from, &to]) else {
            return Reply::error(404, "No common ancestor");
        };
        let list = |range: String| {
            let listed = self.git.must(&["rev-list", "--reverse", "--topo-order", &range]);
            listed.lines().map(ToOwned::to_owned).collect::<Vec<String>>()
        };
        let (ahead, behind) = (list(format!("{from}..{to}")), list(format!("{to}..{from}")));
        let status = match (ahead.is_empty(), behind.is_empty()) {
            (true, true) => "identical",
            (false, true) => "ahead",
            (true, false) => "behind",
            (false, false) => "diverged",
        };
        let page = asked.query.get("page").map_or("1", String::as_str);
        // All of them are on the first page.
        let files = if page == "1" { self.changed_files(&base, &to) } else { Vec::new() };
        let total = ahead.len();
        let commits = ahead.iter().map(|sha| self.commit_json(sha)).collect();
        asked.page(commits, |commits| {
            json!({
                "status": status, "ahead_by": total, "behind_by": behind.len(),
                "total_commits": total, "base_commit": self.commit_json(&from),
                "merge_base_commit": self.commit_json(&base),
                "commits": commits, "files": files,
            })
        })
    }

    /// repos/get-commit
    pub(super) fn one_commit(&self, asked: &Asked, sha: &str) -> Reply {
        match self.git.commit(sha) {
            Some(sha) => {
                let empty = "4b825dc642cb6eb9a060e54bf8d69288fbee4904".to_owned();
                let parent = self.git.commit(&format!("{sha}^")).unwrap_or(empty);
                let commit = self.commit_json(&sha);
                // The files are paged, not the commit.
                asked.page(self.changed_files(&parent, &sha), |files| {
                    let mut commit = commit.clone();
                    commit["files"] = files;
                    commit
                })
            }
            None => Reply::not_found(),
        }
    }

    /// The files that differ, at most 300.
    fn changed_files(&self, from: &str, to: &str) -> Vec<Value> {
        let listed = self.git.must(&["diff", "--name-status", "-M", "-z", from, to]);
        let mut fields = listed.split('\0').filter(|field| !field.is_empty());
        let mut files = Vec::new();
        while let Some((status, name)) = fields.next().zip(fields.next()) {
            let file = match status.strip_prefix('R').and_then(|_| fields.next()) {
                Some(now) => json!({"filename": now, "previous_filename": name}),
                None => json!({"filename": name}),
            };
            files.push(file);
        }
        files.truncate(300);
        files
    }

    /// git/get-tree, of one folder or recursive; the id of a commit denotes its root tree.
    pub(super) fn get_tree(&self, asked: &Asked, id: &str) -> Reply {
        let Some(sha) = self.git.ask(&["rev-parse", "--verify", &format!("{id}^{{tree}}")]) else {
            return Reply::not_found();
        };
        let listed = match asked.query.get("recursive") {
            Some(_) => self.git.must(&["ls-tree", "-r", "-t", &sha]),
            None => self.git.must(&["ls-tree", &sha]),
        };
        let entries = listed.lines().filter_map(|line| {
            let (about, path) = line.split_once('\t')?;
            let about: Vec<&str> = about.split(' ').collect();
            let [mode, kind, object] = about.as_slice() else { return None };
            Some(json!({"path": path, "mode": mode, "type": kind, "sha": object}))
        });
        let entries: Vec<Value> = entries.collect();
        Reply::new(200, json!({"sha": sha, "tree": entries, "truncated": false}))
    }

    /// repos/get-content
    pub(super) fn contents(&self, asked: &Asked, path: &str) -> Reply {
        let at = asked.query.get("ref").map_or("main", String::as_str);
        match self.git.ask(&["cat-file", "blob", &format!("{at}:{path}")]) {
            Some(text) => Reply::new(
                200,
                json!({
                    "type": "file", "encoding": "base64", "path": path, "size": text.len(),
                    "content": super::auth::base64(text.as_bytes()),
                }),
            ),
            None => Reply::not_found(),
        }
    }

    /// Handles a moved ref: updates pull requests from this branch, marks the ones that the base
    /// contains as merged, and starts CI on test branches.
    pub(super) fn ref_moved(&mut self, name: &str, sha: &str) {
        let Some(branch) = name.strip_prefix("refs/heads/") else { return };
        let mut touched = Vec::new();
        for (number, pull) in &mut self.pulls {
            if pull.open && pull.fork.is_none() && pull.head_ref == branch && pull.head != sha {
                sha.clone_into(&mut pull.head);
                touched.push((*number, "synchronize"));
            } else if pull.open && pull.base == branch && self.git.is_ancestor(&pull.head, sha) {
                (pull.open, pull.merged) = (false, true);
                touched.push((*number, "closed"));
            }
        }
        for (number, action) in touched {
            self.emit_pull(number, action);
        }
        if branch == "main" {
            self.landed_trees.push(self.git.tree(sha));
        }
        let after = json!({"ref": name, "after": sha});
        if !branch.starts_with("signalbox-temp/") {
            self.tell("push", after);
        }
        if branch.starts_with("signalbox-merge/") {
            self.run_ci(sha);
        }
    }
}
