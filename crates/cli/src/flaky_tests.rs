//! `signalbox tests list|quarantine|flag`: flaky tests of a running server.

use clap::{Args, Subcommand, ValueEnum};
use signalbox_client::{
    QuarantineDecision, QuarantineSetting, QuarantinedTest, TestFlag, UnhealthyStatus,
    UnhealthyTest,
};

use crate::CliError;
use crate::server::{Server, repo, show};

/// The server and the repository.
#[derive(Args)]
pub struct RepositoryArgs {
    /// HOST/OWNER/NAME.
    #[arg(long)]
    repo: String,
    #[command(flatten)]
    server: Server,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The tests to list.
#[derive(Clone, Copy, ValueEnum)]
pub enum Which {
    /// Flaky tests.
    Flaky,
    /// Broken tests.
    Broken,
    /// Quarantined tests: their failures count as passed.
    Quarantined,
}

/// The quarantine override of a test.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Setting {
    /// Always quarantine the test, whatever its status.
    Always,
    /// Never quarantine the test.
    Never,
    /// Follow the settings of the repository.
    Follow,
}

/// The override, as a flag or as an argument.
#[derive(Args)]
#[group(id = "decision", required = true, multiple = false)]
pub struct Decision {
    /// Always quarantine the test, whatever its status.
    #[arg(long)]
    always: bool,
    /// Never quarantine the test.
    #[arg(long)]
    never: bool,
    /// Follow the settings of the repository.
    #[arg(long)]
    follow: bool,
    /// The override.
    #[arg(value_enum)]
    setting: Option<Setting>,
}

impl Decision {
    /// The value in the API.
    pub(crate) fn setting(&self) -> QuarantineSetting {
        let (always, never) = (self.always, self.never);
        match self.setting {
            Some(Setting::Always) => QuarantineSetting::Always,
            Some(Setting::Never) => QuarantineSetting::Never,
            None if always => QuarantineSetting::Always,
            None if never => QuarantineSetting::Never,
            Some(Setting::Follow) | None => QuarantineSetting::Follow,
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
        /// The tests to list.
        #[arg(long, value_enum, default_value = "flaky")]
        which: Which,
        /// The slug of the token's organization.
        #[arg(long, env = "SIGNALBOX_ORG")]
        org: String,
        #[command(flatten)]
        place: RepositoryArgs,
    },
    /// List flaky and broken tests.
    #[command(
        after_help = "Example: signalbox tests unhealthy --repo git.local/acme/calc --org acme"
    )]
    Unhealthy {
        /// The slug of the token's organization.
        #[arg(long, env = "SIGNALBOX_ORG")]
        org: String,
        #[command(flatten)]
        place: RepositoryArgs,
    },
    /// Override the quarantine of a test.
    #[command(
        after_help = "Example: signalbox tests quarantine 06cb6db5-f807-5198-b072-af67a0636f8a --always --reason KAN-123 --repo git.local/acme/calc"
    )]
    Quarantine {
        /// The id of the test.
        test: String,
        #[command(flatten)]
        decision: Decision,
        /// When `always` ends, such as 2026-01-31T12:00:00Z; default: never.
        #[arg(long, value_name = "TIME")]
        until: Option<String>,
        /// The reason, kept in the test's history.
        #[arg(long)]
        reason: Option<String>,
        #[command(flatten)]
        place: RepositoryArgs,
    },
    /// Flag a test as flaky, independently of the monitors.
    #[command(
        after_help = "Example: signalbox tests flag 06cb6db5-f807-5198-b072-af67a0636f8a --reason 'fails on Mondays' --repo git.local/acme/calc"
    )]
    Flag {
        /// The id of the test.
        test: String,
        /// Remove the flag.
        #[arg(long)]
        remove: bool,
        /// The reason, kept in the test's history.
        #[arg(long)]
        reason: Option<String>,
        #[command(flatten)]
        place: RepositoryArgs,
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
            let (repo, setting) = (repo(&place.repo)?, decision.setting());
            let decision =
                QuarantineDecision { repo, test_id: test, setting, expires_at: until, reason };
            let reply = place.server.client()?.override_quarantine(&decision).await?;
            show(&reply, place.json, |_| "override set".to_owned());
            Ok(())
        }
        FlakyTests::Flag { test, remove, reason, place } => {
            let repo = repo(&place.repo)?;
            let flag = TestFlag { repo, test_id: test, flagged: !remove, reason };
            let reply = place.server.client()?.flag_test(&flag).await?;
            show(&reply, place.json, |_| if remove { "unflagged" } else { "flagged" }.to_owned());
            Ok(())
        }
    }
}

/// Prints every test of a list, page by page.
async fn list(which: Which, org: &str, place: &RepositoryArgs) -> Result<(), CliError> {
    let (client, repo) = (place.server.client()?, repo(&place.repo)?);
    let mut token = String::new();
    loop {
        let status = match which {
            Which::Flaky => Some(UnhealthyStatus::Flaky),
            Which::Broken => Some(UnhealthyStatus::Broken),
            Which::Quarantined => None,
        };
        let next = if let Some(status) = status {
            let found = client.unhealthy_tests(&repo, org, status, &token).await?.value;
            found.tests.iter().for_each(|test| show(test, place.json, unhealthy));
            found.page
        } else {
            let found = client.quarantined_tests(&repo, org, &token).await?.value;
            found.quarantined_tests.iter().for_each(|test| show(test, place.json, quarantined));
            found.page
        };
        token = next.next_page_token;
        if token.is_empty() {
            return Ok(());
        }
    }
}

fn unhealthy(test: &UnhealthyTest) -> String {
    line(&test.id, &test.name, &test.variant, &test.status.value, test.quarantined)
}

fn quarantined(test: &QuarantinedTest) -> String {
    line(&test.test_case_id, &test.name, &test.variant, &test.status, true)
}

fn line(id: &str, name: &str, variant: &str, status: &str, is_quarantined: bool) -> String {
    let mark = if is_quarantined { ", quarantined" } else { "" };
    let variant = if variant.is_empty() { String::new() } else { format!(" [{variant}]") };
    format!("{id} {name}{variant} ({}{mark})", status.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_of_either_list_is_one_line() {
        let found = serde_json::json!({
            "id": "1", "name": "adds", "variant": "mac", "status": {"value": "flaky"},
            "quarantined": false,
        });
        let found: UnhealthyTest = serde_json::from_value(found).expect("a test");
        assert_eq!(unhealthy(&found), "1 adds [mac] (flaky)");
        let found = serde_json::json!({
            "test_case_id": "2", "name": "subtracts", "variant": "", "status": "BROKEN",
        });
        let found: QuarantinedTest = serde_json::from_value(found).expect("a test");
        assert_eq!(quarantined(&found), "2 subtracts (broken, quarantined)");
    }
}
