//! Flaky tests: one operation a file.

pub(crate) mod create_ci_run;
pub(crate) mod create_monitor;
pub(crate) mod decide_incident;
pub(crate) mod delete_monitor;
pub(crate) mod finish_import;
pub(crate) mod flag_test;
pub(crate) mod get_settings;
pub(crate) mod get_settings_history;
pub(crate) mod get_test_details;
pub(crate) mod get_test_history;
pub(crate) mod link_ticket_to_test_case;
pub(crate) mod list_failing_tests;
pub(crate) mod list_failures_of_test_run;
pub(crate) mod list_incidents;
pub(crate) mod list_monitors;
pub(crate) mod list_quarantined_tests;
pub(crate) mod list_unhealthy_tests;
pub(crate) mod mute_monitor;
pub(crate) mod override_quarantine;
pub(crate) mod preview_monitor;
pub(crate) mod update_monitor;
pub(crate) mod update_settings;

use signalbox_domain::ids::RepoName;
use signalbox_domain::ports::TestSnapshot;
use signalbox_domain::token::{Caller, Scope};
use signalbox_services::{Error, ListKind};

use crate::api::Api;
use crate::dto::tests::{Listing, NamedOrg};
use crate::paging::{ListId, PageReply};
use crate::problem::Problem;

/// Checks that the organization of a request is the token's own. Other organizations do not exist
/// for the caller.
fn own_org(caller: &Caller, scope: Scope, org: &NamedOrg, repo: &RepoName) -> Result<(), Problem> {
    if !caller.may(scope) {
        return Err(Error::MissingScope(scope).into());
    }
    if !org.is(&caller.org_slug) {
        return Err(Error::UnknownRepository(repo.clone()).into());
    }
    Ok(())
}

/// A page of a list. A token of another list is refused before anything is read.
async fn listed(
    api: &Api,
    caller: &Caller,
    operation: &str,
    asked: &Listing,
) -> Result<(Vec<TestSnapshot>, PageReply), Problem> {
    own_org(caller, Scope::TestsRead, &asked.org, &asked.repo)?;
    let filter = match asked.kind {
        ListKind::Failing { from, until } => {
            format!("{} {} {}", asked.repo, from.unix_micros(), until.unix_micros())
        }
        ListKind::Unhealthy(status) => format!("{} {}", asked.repo, status.as_str()),
        ListKind::Quarantined => asked.repo.to_string(),
    };
    let page_size = asked.page_size;
    let list = ListId { org: caller.org, operation, filter: &filter, page_size };
    let pages = &api.flaky.pages;
    let turn = pages.read(list, asked.page_token.as_deref())?;
    let reading = turn.reading(page_size);
    let service = &api.flaky.service;
    let read = service
        .list_for_api(caller, &asked.repo, asked.kind, reading.seek, reading.limit, reading.counted)
        .await?;
    let (tests, page) = turn.cut(read.tests, |it| it.record.test.id, read.total, page_size);
    Ok((tests, pages.reply(list, &page)))
}
