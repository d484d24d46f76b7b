//! `signalbox tests list|quarantine|flag`: flaky tests of a running server.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use crate::server::{Server, repo};
use crate::{CliError, say};

/// Which repository of which server.
#[derive(Args)]
pub struct Place {
    /// HOST/OWNER/NAME.
    #[arg(long)]
    repo: String,
    #[command(flatten)]
    server: Server,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// Which tests are listed.
#[derive(Clone, Copy, ValueEnum)]
pub enum Which {
    /// Flaky ones.
    Flaky,
    /// Broken ones.
    Broken,
    /// Those whose next failure counts as passed.
    Quarantined,
}

/// What is decided about the quarantine of a test.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Setting {
    /// Quarantined whatever its status.
    Always,
    /// Never quarantined.
    Never,
    /// As the repository's settings say.
    Follow,
}

/// The decision, as a flag or as a word.
#[derive(Args)]
#[group(id = "decision", required = true, multiple = false)]
pub struct Decision {
    /// Quarantined whatever its status.
    #[arg(long)]
    always: bool,
    /// Never quarantined.
    #[arg(long)]
    never: bool,
    /// As the repository's settings say.
    #[arg(long)]
    follow: bool,
    /// The same as a word.
    #[arg(value_enum)]
    setting: Option<Setting>,
}

impl Decision {
    /// As the API calls it.
    pub fn word(&self) -> &'static str {
        let (always, never) = (self.always, self.never);
        match self.setting {
            Some(Setting::Always) => "ALWAYS_QUARANTINE",
            Some(Setting::Never) => "NEVER_QUARANTINE",
            None if always => "ALWAYS_QUARANTINE",
            None if never => "NEVER_QUARANTINE",
            Some(Setting::Follow) | None => "UNSPECIFIED",
        }
    }
}

#[derive(Subcommand)]
pub enum FlakyTests {
    /// List flaky, broken or quarantined tests.
    #[command(
        after_help = "Example: signalbox tests list --which broken --repo git.local/acme/calc --org acme"
    )]
    List {
        /// Which tests.
        #[arg(long, value_enum, default_value = "flaky")]
        which: Which,
        /// The slug of the token's organization.
        #[arg(long, env = "SIGNALBOX_ORG")]
        org: String,
        #[command(flatten)]
        place: Place,
    },
    /// List flaky tests, then broken ones.
    #[command(
        after_help = "Example: signalbox tests unhealthy --repo git.local/acme/calc --org acme"
    )]
    Unhealthy {
        /// The slug of the token's organization.
        #[arg(long, env = "SIGNALBOX_ORG")]
        org: String,
        #[command(flatten)]
        place: Place,
    },
    /// Decide about the quarantine of a test.
    #[command(
        after_help = "Example: signalbox tests quarantine 06cb6db5-f807-5198-b072-af67a0636f8a --always --reason KAN-123 --repo git.local/acme/calc"
    )]
    Quarantine {
        /// The id of the test.
        test: String,
        #[command(flatten)]
        decision: Decision,
        /// When `always` ends, such as 2026-01-31T12:00:00Z; for ever when it is left out.
        #[arg(long, value_name = "TIME")]
        until: Option<String>,
        /// Why.
        #[arg(long)]
        reason: Option<String>,
        #[command(flatten)]
        place: Place,
    },
    /// Flag a test as flaky, whatever monitors say.
    #[command(
        after_help = "Example: signalbox tests flag 06cb6db5-f807-5198-b072-af67a0636f8a --reason 'fails on Mondays' --repo git.local/acme/calc"
    )]
    Flag {
        /// The id of the test.
        test: String,
        /// Take the flag back.
        #[arg(long)]
        remove: bool,
        /// Why.
        #[arg(long)]
        reason: Option<String>,
        #[command(flatten)]
        place: Place,
    },
}

pub(crate) async fn flaky_tests(action: FlakyTests) -> Result<(), CliError> {
    match action {
        FlakyTests::List { which, org, place } => list(which, &org, &place).await,
        FlakyTests::Unhealthy { org, place } => {
            list(Which::Flaky, &org, &place).await?;
            list(Which::Broken, &org, &place).await
        }
        FlakyTests::Quarantine { test, decision, until, reason, place } => {
            let setting = decision.word();
            let body =
                json!({ "testId": test, "setting": setting, "expiresAt": until, "reason": reason });
            done(&place, "override-quarantine", body, "decided").await
        }
        FlakyTests::Flag { test, remove, reason, place } => {
            let body = json!({ "testId": test, "flagged": !remove, "reason": reason });
            done(&place, "flag-test", body, if remove { "unflagged" } else { "flagged" }).await
        }
    }
}

async fn done(place: &Place, operation: &str, body: Value, word: &str) -> Result<(), CliError> {
    let reply = call(place, operation, body).await?;
    say(&if place.json { reply.to_string() } else { word.to_owned() });
    Ok(())
}

/// Prints every test of a list, page by page.
async fn list(which: Which, org: &str, place: &Place) -> Result<(), CliError> {
    let (operation, key, status) = match which {
        Which::Flaky => ("list-unhealthy-tests", "tests", Some("FLAKY")),
        Which::Broken => ("list-unhealthy-tests", "tests", Some("BROKEN")),
        Which::Quarantined => ("list-quarantined-tests", "quarantined_tests", None),
    };
    let mut token = String::new();
    loop {
        let body = json!({
            "org_url_slug": org, "status": status,
            "page_query": { "page_size": 100, "page_token": token },
        });
        let page = call(place, operation, body).await?;
        for test in page[key].as_array().into_iter().flatten() {
            say(&if place.json { test.to_string() } else { line(test) });
        }
        page["page"]["next_page_token"].as_str().unwrap_or_default().clone_into(&mut token);
        if token.is_empty() {
            return Ok(());
        }
    }
}

fn line(test: &Value) -> String {
    let words = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let id = if test["id"].is_string() { &test["id"] } else { &test["test_case_id"] };
    let status =
        if test["status"].is_string() { &test["status"] } else { &test["status"]["value"] };
    let quarantined = test["quarantined"].as_bool().unwrap_or(true);
    let mark = if quarantined { ", quarantined" } else { "" };
    let (variant, status) = (words(&test["variant"]), words(status).to_lowercase());
    let variant = if variant.is_empty() { variant } else { format!(" [{variant}]") };
    format!("{} {}{variant} ({status}{mark})", words(id), words(&test["name"]))
}

async fn call(place: &Place, operation: &str, mut body: Value) -> Result<Value, CliError> {
    body["repo"] = repo(&place.repo)?;
    Ok(place.server.client()?.post(&format!("flaky-tests/{operation}"), &body).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_of_either_list_is_one_line() {
        let unhealthy = json!({
            "id": "1", "name": "adds", "variant": "mac", "status": {"value": "flaky"},
            "quarantined": false,
        });
        assert_eq!(line(&unhealthy), "1 adds [mac] (flaky)");
        let quarantined =
            json!({"test_case_id": "2", "name": "subtracts", "variant": "", "status": "BROKEN"});
        assert_eq!(line(&quarantined), "2 subtracts (broken, quarantined)");
    }
}
