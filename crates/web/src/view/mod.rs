//! Pages as values, built from the results of services. Pure functions: the same input gives the
//! same page.

pub(crate) mod actions;
pub(crate) mod audit;
mod bisection;
pub(crate) mod exits;
mod failing_hours;
pub(crate) mod graph;
pub(crate) mod health;
pub(crate) mod home;
mod landing;
pub(crate) mod left;
pub(crate) mod load;
pub(crate) mod management;
pub(crate) mod monitors;
pub(crate) mod neighbours;
pub(crate) mod output;
mod passed_time;
pub(crate) mod pr;
pub(crate) mod quarantine;
pub(crate) mod queue;
pub(crate) mod queue_list;
pub(crate) mod reference;
pub(crate) mod run;
pub(crate) mod settings;
pub(crate) mod status;
pub(crate) mod test;
pub(crate) mod test_forms;
pub(crate) mod test_list;
pub(crate) mod test_owners;
pub(crate) mod tokens;
pub(crate) mod trend;
pub(crate) mod uploads;
pub(crate) mod webhooks;
mod what_if;

use signalbox_domain::ids::{BranchName, PrNumber, RepoName};

use crate::model::MenuItem;
use crate::text::{plain, queue_path, tests_path};

/// The most rows of a table.
pub(crate) const ROWS: usize = 100;

/// The most pull requests that are named in a text.
const NAMED: usize = 20;

/// The numbers of pull requests, `–` if there are none: `#1, #2`.
fn numbers(prs: impl IntoIterator<Item = PrNumber>) -> String {
    let mut named: Vec<String> = prs.into_iter().map(|pr| format!("#{pr}")).collect();
    let more = named.len().saturating_sub(NAMED);
    named.truncate(NAMED);
    if more > 0 {
        named.push(format!("{more} more"));
    }
    if named.is_empty() { "–".to_owned() } else { named.join(", ") }
}

/// The queue of an address.
#[derive(Clone, Debug)]
pub(crate) struct QueueAddress {
    pub(crate) org: String,
    pub(crate) repo: RepoName,
    pub(crate) branch: BranchName,
}

impl QueueAddress {
    pub(crate) fn path(&self, page: &str) -> String {
        queue_path(&self.org, page, &self.repo, &self.branch)
    }

    pub(crate) fn pr(&self, pr: PrNumber) -> String {
        crate::text::pr_path(&self.org, &self.repo, &self.branch, pr)
    }

    /// Its name in headings.
    pub(crate) fn name(&self) -> String {
        let branch = plain(self.branch.as_str(), 250);
        format!("{} → {branch}", plain(&format!("{}/{}", self.repo.owner, self.repo.name), 250))
    }

    /// The pages of this queue.
    pub(crate) fn menu(&self, current: &str) -> Vec<MenuItem> {
        let pages = [
            ("Queue", "queue"),
            ("Graph", "queue/graph"),
            ("Left the queue", "queue/left"),
            ("Health", "queue/health"),
            ("Settings", "queue/settings"),
        ];
        let mut menu: Vec<MenuItem> = pages
            .iter()
            .map(|(label, page)| MenuItem {
                label: (*label).to_owned(),
                href: self.path(page),
                current: *page == current,
            })
            .collect();
        menu.push(MenuItem {
            label: "Tests".to_owned(),
            href: tests_path(&self.org, "flaky-tests", &self.repo),
            current: false,
        });
        menu
    }

    /// The API call with the same content.
    pub(crate) fn curl(&self, operation: &str, more: &str) -> String {
        let (host, owner, name) = (&self.repo.host, &self.repo.owner, &self.repo.name);
        let body = serde_json::json!({
            "repo": { "host": host.as_str(), "owner": owner, "name": name },
            "targetBranch": self.branch.as_str(),
        });
        let body = body.to_string();
        let body = body.strip_suffix('}').unwrap_or(&body);
        curl(operation, &format!("{body}{more}}}"))
    }
}

/// An API call with curl.
pub(crate) fn curl(operation: &str, body: &str) -> String {
    format!(
        "curl -H \"x-api-token: $SIGNALBOX_TOKEN\" -H 'content-type: application/json' \\\n  \
         -d '{}' \"$SIGNALBOX_URL/v1/{operation}\"",
        body.replace('\'', "'\\''")
    )
}
