//! `signalbox tests list|quarantine|flag`: flaky tests of a running server.

use clap::{Args, Subcommand, ValueEnum};
use signalbox_client::{
    QuarantineDecision, QuarantineSetting, QuarantinedTest, StreamExt, TestFlag, UnhealthyStatus,
    UnhealthyTest,
};
use signalbox_terminal::{Format, Table};

use crate::CliError;
use crate::server::{Organization, Repository, Server, list, show};

/// The server and the repository.
#[derive(Args)]
pub struct RepositoryArgs {
    #[command(flatten)]
    repo: Repository,
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    format: Format,
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
        #[command(flatten)]
        org: Organization,
        #[command(flatten)]
        place: RepositoryArgs,
    },
    /// List flaky and broken tests.
    #[command(
        after_help = "Example: signalbox tests unhealthy --repo git.local/acme/calc --org acme"
    )]
    Unhealthy {
        #[command(flatten)]
        org: Organization,
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
        FlakyTests::List { which, org, place } => {
            let (client, repo) = (place.server.client()?, place.repo.repo());
            let mut table = Table::new("no such tests found", &HEADERS);
            let status = match which {
                Which::Flaky => UnhealthyStatus::Flaky,
                Which::Broken => UnhealthyStatus::Broken,
                Which::Quarantined => {
                    let tests = client.all_quarantined_tests(&repo, &org.slug);
                    return list(tests, place.format, &mut table, quarantined).await;
                }
            };
            let tests = client.all_unhealthy_tests(&repo, &org.slug, status);
            list(tests, place.format, &mut table, unhealthy).await
        }
        FlakyTests::Unhealthy { org, place } => {
            let (client, repo) = (place.server.client()?, place.repo.repo());
            let mut table = Table::new("no flaky or broken tests found", &HEADERS);
            let of = |status| client.all_unhealthy_tests(&repo, &org.slug, status);
            let tests = of(UnhealthyStatus::Flaky).chain(of(UnhealthyStatus::Broken));
            list(tests, place.format, &mut table, unhealthy).await
        }
        FlakyTests::Quarantine { test, decision, until, reason, place } => {
            let (repo, setting) = (place.repo.repo(), decision.setting());
            let decision =
                QuarantineDecision { repo, test_id: test, setting, expires_at: until, reason };
            let reply = place.server.client()?.override_quarantine(&decision).await?;
            show(&reply, place.format, |_| "override set".to_owned());
            Ok(())
        }
        FlakyTests::Flag { test, remove, reason, place } => {
            let repo = place.repo.repo();
            let flag = TestFlag { repo, test_id: test, flagged: !remove, reason };
            let reply = place.server.client()?.flag_test(&flag).await?;
            show(&reply, place.format, |_| if remove { "unflagged" } else { "flagged" }.to_owned());
            Ok(())
        }
    }
}

/// The columns of a list of tests.
const HEADERS: [&str; 5] = ["ID", "STATUS", "QUARANTINED", "VARIANT…", "NAME…"];

fn unhealthy(table: &mut Table, test: UnhealthyTest) {
    let quarantined = if test.quarantined { "yes" } else { "no" };
    let status = test.status.value.to_lowercase();
    let UnhealthyTest { id, name, variant, .. } = test;
    table.row([id.into(), status.into(), quarantined.into(), variant.into(), name.into()]);
}

fn quarantined(table: &mut Table, test: QuarantinedTest) {
    let QuarantinedTest { test_case_id, name, variant, status } = test;
    let status = status.to_lowercase();
    table.row([test_case_id.into(), status.into(), "yes".into(), variant.into(), name.into()]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_both_lists_have_the_same_columns() {
        let found = serde_json::json!({
            "id": "1", "name": "adds", "variant": "mac", "status": {"value": "flaky"},
            "quarantined": false,
        });
        let mut table = Table::new("", &HEADERS);
        unhealthy(&mut table, serde_json::from_value(found).expect("a test"));
        let found = serde_json::json!({
            "test_case_id": "2", "name": "subtracts", "variant": "", "status": "BROKEN",
        });
        quarantined(&mut table, serde_json::from_value(found).expect("a test"));
        let lines = [
            "ID  STATUS  QUARANTINED  VARIANT  NAME",
            "1   flaky   no           mac      adds",
            "2   broken  yes                   subtracts",
        ];
        assert_eq!(table.text(None), lines.join("\n"));
    }
}
