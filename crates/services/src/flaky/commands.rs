//! What users decide about a test.

use std::collections::BTreeMap;

use signalbox_domain::audit::{AuditAction, AuditFields, of_test};
use signalbox_domain::flaky::{Command, Input, TestId, decide};
use signalbox_domain::ids::RepoName;
use signalbox_domain::ports::{CiRun, FlakyCommit};
use signalbox_domain::token::{Caller, Scope};

use super::super::Error;
use super::super::audit::AuditEntryBuilder;
use super::judge::Judged;
use super::{ATTEMPTS, FlakyService, settings_of};

impl FlakyService {
    /// Carries out a command on a test. One that changes nothing writes nothing.
    pub async fn command(
        &self,
        caller: &Caller,
        name: &RepoName,
        test: TestId,
        command: Command,
    ) -> Result<(), Error> {
        let (repository, repo) = self.repository(caller, Scope::TestsAdmin, name).await?;
        let stores = &self.context.stores;
        let turn = self.turn(repo);
        let _turn = turn.lock().await;
        for _ in 0..ATTEMPTS {
            let at = self.context.clock.now();
            let known = stores.tests.repo(repo).await?;
            let settings = settings_of(repo, &known);
            let Some(record) = stores.tests.tests(repo, &[test]).await?.pop() else {
                return Err(Error::UnknownTest { repo: name.clone(), test });
            };
            let transition = decide(&record.test, &settings, &command, at)?;
            let input = Input::Command(command.clone());
            let mut audit_entry =
                AuditEntryBuilder::of(caller, action(&command), object(name, test), name);
            audit_entry.reason = command.reason().cloned();
            let (from, to) = (of_test(&record.test), of_test(&transition.test));
            let audit = audit_entry.record(&*self.context.ids, at, &from, &to);
            let judged = vec![Judged { record, transition, input, ticket: None }];
            let steps = self.steps(&repository, &settings, None, None, judged, at).await?;
            if steps.is_empty() {
                return Ok(());
            }
            let expected = known.version;
            let commit = FlakyCommit {
                repo,
                expected,
                settings: None,
                steps: &steps,
                windows: &BTreeMap::new(),
                presences: &BTreeMap::new(),
                incidents: None,
                progress: None,
                at,
                audit: Some(&audit),
            };
            if self.commit(&commit).await?.is_some() {
                return Ok(());
            }
        }
        Err(Error::Busy)
    }

    /// Links a ticket to a test, in place of the one before.
    pub async fn link_ticket(
        &self,
        caller: &Caller,
        name: &RepoName,
        test: TestId,
        ticket: &str,
    ) -> Result<(), Error> {
        let (_, repo) = self.repository(caller, Scope::TestsAdmin, name).await?;
        if self.context.stores.tests.link_ticket(repo, test, ticket).await? {
            let audit_entry =
                AuditEntryBuilder::of(caller, AuditAction::TicketLinked, object(name, test), name);
            let after = AuditFields::from([("ticket".to_owned(), ticket.to_owned())]);
            let record = audit_entry.record(
                &*self.context.ids,
                self.context.clock.now(),
                &AuditFields::new(),
                &after,
            );
            self.context.audit.append(&record).await?;
            return Ok(());
        }
        Err(Error::UnknownTest { repo: name.clone(), test })
    }

    /// Stores a CI run as its uploader reports it, and gives it an id.
    pub async fn add_ci_run(
        &self,
        caller: &Caller,
        name: &RepoName,
        document: String,
    ) -> Result<uuid::Uuid, Error> {
        let (_, repo) = self.repository(caller, Scope::TestsUpload, name).await?;
        let id = self.context.ids.new_id();
        let run = CiRun { id, document, at: self.context.clock.now() };
        self.context.stores.tests.add_ci_run(repo, &run).await?;
        Ok(id)
    }
}

fn object(repo: &RepoName, test: TestId) -> String {
    format!("test {test} of {repo}")
}

/// What the audit log calls a command.
const fn action(command: &Command) -> AuditAction {
    match command {
        Command::Flag { .. } => AuditAction::TestFlagged,
        Command::Unflag { .. } => AuditAction::TestUnflagged,
        Command::Mute { .. } => AuditAction::MonitorMuted,
        Command::Unmute { .. } => AuditAction::MonitorUnmuted,
        Command::SetQuarantine { .. } => AuditAction::QuarantineOverridden,
        Command::AddLabel { .. } => AuditAction::LabelAdded,
        Command::RemoveLabel { .. } => AuditAction::LabelRemoved,
    }
}
