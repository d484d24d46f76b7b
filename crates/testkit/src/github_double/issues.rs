//! Comments, reactions, labels, permissions.

use serde_json::{Value, json};

use super::state::{Asked, Note, Reply, State};

impl State {
    fn note_json(&self, id: u64, note: &Note) -> Value {
        json!({
            "id": id, "url": self.url(&format!("/issues/comments/{id}")), "body": note.body, "user": {"login": note.author, "id": 9},
            "created_at": note.created_at, "issue_url": self.url(&format!("/issues/{}", note.issue)),
            "performed_via_github_app": note.app.map(|id| json!({"id": id, "slug": "app"})),
        })
    }

    /// Writes a comment, and emits its event.
    pub(super) fn write_note(&mut self, note: Note) -> u64 {
        let id = self.next_id();
        let (issue, author) = (note.issue, note.author.clone());
        let shown = self.note_json(id, &note);
        self.notes.insert(id, note);
        self.tell(
            "issue_comment",
            json!({
                "action": "created", "issue": {"number": issue, "pull_request": {}},
                "comment": shown, "sender": {"login": author},
            }),
        );
        id
    }

    /// issues/list-comments
    pub(super) fn list_notes(&self, asked: &Asked, issue: u64) -> Reply {
        let found = self.notes.iter().filter(|(_, note)| note.issue == issue);
        asked.page(found.map(|(id, note)| self.note_json(*id, note)).collect(), |it| it)
    }

    /// issues/list-comments-for-repo
    pub(super) fn all_notes(&self, asked: &Asked) -> Reply {
        let since = asked.query.get("since").cloned().unwrap_or_default();
        let found = self.notes.iter().filter(|(_, note)| note.created_at >= since);
        asked.page(found.map(|(id, note)| self.note_json(*id, note)).collect(), |it| it)
    }

    /// issues/create-comment
    pub(super) fn create_note(&mut self, asked: &Asked, issue: u64) -> Reply {
        if !self.pulls.contains_key(&issue) {
            return Reply::not_found();
        }
        let note = Note {
            issue,
            author: asked.login.clone(),
            app: asked.app,
            body: asked.text("body").to_owned(),
            created_at: "2026-01-01T00:00:00Z".to_owned(),
            reactions: Vec::new(),
        };
        let id = self.write_note(note.clone());
        Reply::new(201, self.note_json(id, &note))
    }

    /// issues/get-comment, issues/update-comment, reactions/create-for-issue-comment
    pub(super) fn one_note(&mut self, asked: &Asked, id: u64, rest: &[String]) -> Reply {
        let Some(mut note) = self.notes.get(&id).cloned() else { return Reply::not_found() };
        match (asked.method.as_str(), rest) {
            ("GET", []) => Reply::new(200, self.note_json(id, &note)),
            ("PATCH", []) => {
                asked.text("body").clone_into(&mut note.body);
                self.notes.insert(id, note.clone());
                Reply::new(200, self.note_json(id, &note))
            }
            ("POST", [reactions]) if reactions == "reactions" => {
                note.reactions.push(asked.text("content").to_owned());
                self.notes.insert(id, note);
                Reply::new(201, json!({"id": 1, "content": asked.text("content")}))
            }
            _ => Reply::not_found(),
        }
    }

    /// issues/list-labels-on-issue, issues/add-labels, issues/remove-label
    pub(super) fn labels(&mut self, asked: &Asked, issue: u64, name: Option<&str>) -> Reply {
        let Some(pull) = self.pulls.get_mut(&issue) else { return Reply::not_found() };
        let mut changed = Vec::new();
        match (asked.method.as_str(), name) {
            ("GET", None) => {}
            ("POST", None) => {
                // Either form is allowed.
                let labels = asked.body["labels"].as_array().or(asked.body.as_array());
                let labels = labels.cloned().unwrap_or_default();
                for label in labels.iter().filter_map(Value::as_str) {
                    if pull.labels.insert(label.to_owned()) {
                        changed.push((label.to_owned(), "labeled"));
                    }
                }
            }
            ("DELETE", Some(name)) => {
                if !pull.labels.remove(name) {
                    return Reply::error(404, "Label does not exist");
                }
                changed.push((name.to_owned(), "unlabeled"));
            }
            _ => return Reply::not_found(),
        }
        let labels: Vec<Value> = pull.labels.iter().map(|it| json!({"name": it})).collect();
        for (label, action) in changed {
            self.tell(
                "pull_request",
                json!({
                    "action": action, "number": issue, "label": {"name": label},
                    "sender": {"login": asked.login},
                }),
            );
        }
        if asked.method == "GET" {
            asked.page(labels, |it| it)
        } else {
            Reply::new(200, json!(labels))
        }
    }

    /// repos/get-collaborator-permission-level
    pub(super) fn permission(&self, login: &str) -> Reply {
        match self.permissions.get(login) {
            Some(has) => Reply::new(
                200,
                json!({"permission": has, "role_name": has,
                "user": {"login": login}}),
            ),
            None => Reply::new(
                200,
                json!({"permission": "read", "role_name": "read",
                "user": {"login": login}}),
            ),
        }
    }
}
