//! `signalbox audit`, and the audit entries of commands.

use clap::Subcommand;
use serde_json::{Value, json};
use signalbox_domain::audit::{AuditAction, AuditFields, AuditRecord};
use signalbox_domain::ids::{OrgId, RepoName};
use signalbox_domain::ports::{AuditFilter, AuditPlace};
use signalbox_domain::time::{Timestamp, Window};
use signalbox_services::{AuditEntryBuilder, AuditService};
use signalbox_terminal::{Cell, Format, Table, say_json};

use crate::AdminError;
use crate::offline::existing_organization;
use crate::program::{Offline, Program, open};

/// Records per page.
const PAGE: u32 = 500;

#[derive(Subcommand)]
pub enum Audit {
    /// List changes and their authors, newest first.
    #[command(
        after_help = "Example: signalbox audit list --org acme --action queue.updated --json"
    )]
    List {
        /// Only changes of this organization.
        #[arg(long, value_name = "SLUG")]
        org: Option<String>,
        /// Only this kind of change: queue.updated, token.created, …
        #[arg(long, value_name = "ACTION")]
        action: Option<String>,
        /// Only changes of this repository.
        #[arg(
            long,
            value_name = "HOST/OWNER/NAME",
            value_parser = RepoName::parse
        )]
        repo: Option<RepoName>,
        /// Only changes at or after this time.
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// Only changes before this time.
        #[arg(long, value_name = "TIME")]
        until: Option<String>,
        /// The most records to list.
        #[arg(long, default_value_t = 50)]
        limit: u32,
        #[command(flatten)]
        format: Format,
    },
}

pub async fn audit(program: &dyn Program, action: Audit) -> Result<(), AdminError> {
    let Audit::List { org, action, repo, since, until, limit, format } = action;
    let time = |text: Option<String>| match text {
        None => Ok(None),
        Some(text) => {
            let wrong = || {
                AdminError::Argument(format!(
                    "invalid time {text:?}: expected RFC 3339, such as 2026-11-21T12:00:00Z"
                ))
            };
            Timestamp::parse(&text).map(Some).ok_or_else(wrong)
        }
    };
    let kind = |word: String| {
        let all: Vec<&str> = AuditAction::ALL.iter().map(|it| it.as_str()).collect();
        let wrong = || {
            let known = all.join(", ");
            AdminError::Argument(format!("unknown action {word:?}: expected one of {known}"))
        };
        AuditAction::parse(&word).ok_or_else(wrong)
    };
    let filter = AuditFilter {
        action: action.map(kind).transpose()?,
        repos: repo.into_iter().collect(),
        window: Window { since: time(since)?, until: time(until)? },
        ..AuditFilter::default()
    };
    let app = open(program).await?;
    let org = existing_organization(&app, org.as_deref()).await?.map(|org| org.id);
    let mut table = Table::new("no changes found", &HEADERS);
    let (mut left, mut place) = (limit, None);
    while left > 0 {
        let page = app.context.stores.account.audit.list(org, &filter, place, left.min(PAGE)).await;
        let page = page.map_err(AdminError::failed("audit log"))?;
        let Some(last) = page.last() else { break };
        place = Some(AuditPlace { at: last.at, id: last.id });
        left = left.saturating_sub(u32::try_from(page.len()).unwrap_or(u32::MAX));
        for record in &page {
            if format.is_json() {
                say_json(&as_json(record));
            } else {
                row(&mut table, record);
            }
        }
    }
    table.print_unless(format);
    Ok(())
}

fn as_json(it: &AuditRecord) -> Value {
    let changes = it
        .changes
        .iter()
        .map(|it| json!({ "field": it.field, "before": it.before, "after": it.after }));
    json!({
        "id": it.id.to_string(), "org": it.org.to_string(), "at": it.at.to_string(),
        "actor": it.actor.to_string(), "tokenId": it.actor.token().map(|id| id.to_string()),
        "action": it.action.as_str(), "object": it.object,
        "repo": it.repo.as_ref().map(ToString::to_string),
        "changes": changes.collect::<Vec<_>>(), "reason": it.reason, "requestId": it.request,
    })
}

/// The columns of the audit log.
const HEADERS: [&str; 5] = ["TIME", "ACTOR…", "ACTION", "OBJECT…", "CHANGES…"];

fn row(table: &mut Table, it: &AuditRecord) {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    let change = |it: &signalbox_domain::audit::AuditChange| {
        format!("{} {} -> {}", it.field, value(&it.before), value(&it.after))
    };
    let changes: Vec<String> = it.changes.iter().map(change).collect();
    table.row([
        Cell::time(Some(it.at)),
        it.actor.to_string().into(),
        it.action.as_str().into(),
        it.object.clone().into(),
        changes.join("; ").into(),
    ]);
}

/// Records what a command is about to do. It comes first, so that no change is without a record;
/// after a failed change the log shows no later effect of it.
pub(super) async fn note(
    app: &Offline,
    org: OrgId,
    action: AuditAction,
    object: String,
    (before, after): (&AuditFields, &AuditFields),
) -> Result<(), AdminError> {
    let entry = AuditEntryBuilder::operator(org, action, object);
    let audit = AuditService::new(app.context.clone());
    audit.write(&entry, before, after).await.map_err(AdminError::failed("audit log"))
}
