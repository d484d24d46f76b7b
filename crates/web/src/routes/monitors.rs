//! The page of the monitors of a repository, and its forms.

use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use signalbox_domain::flaky::Monitor;
use signalbox_domain::token::Scope;
use signalbox_services::Error;

use super::test_list::{place, version};
use crate::Pages;
use crate::failure::Failure;
use crate::model::Page;
use crate::shell::{Shown, answer};
use crate::view;
use crate::view::monitors::{Chosen, Seen};
use crate::view::test_list::TestsAddress;
use crate::visitor::{Asked, Visitor};

/// `GET /{org}/flaky-tests/monitors`.
pub(crate) async fn list(
    pages: Data<Pages>,
    request: HttpRequest,
    org: Path<String>,
) -> HttpResponse {
    let shown = show(&pages, &request, &org).await;
    answer(&pages, &request, shown)
}

async fn show(pages: &Pages, request: &HttpRequest, org: &str) -> Shown {
    let (visitor, place, asked) = place(pages, request, org).await?;
    let version = version(pages, &visitor, &place).await?;
    let caller = &visitor.caller;
    let settings = pages.flaky.settings(caller, &place.repo).await?;
    let mut chosen = None;
    let mut preview = None;
    if asked.has("monitor") {
        let mut found = Chosen::find(&settings, asked.text("monitor")).ok_or(Failure::Missing)?;
        found.monitor = with_parameters(found.monitor, &asked)?;
        preview = match pages.flaky.preview(caller, &place.repo, &found.monitor).await {
            Ok(preview) => Some(Ok(preview)),
            Err(Error::FlakyRefused(refusal)) => Some(Err(refusal.to_string())),
            Err(error) => return Err(error.into()),
        };
        chosen = Some(found);
    }
    let page = view::monitors::page(&Seen {
        place: &place,
        settings: &settings,
        chosen: chosen.as_ref(),
        preview,
        may_change: visitor.may_send(Scope::TestsAdmin),
    });
    Ok((Some(visitor), Page { version, ..page }))
}

/// The monitor with the parameters that were sent.
fn with_parameters(monitor: Monitor, sent: &Asked) -> Result<Monitor, Failure> {
    let mut given = Vec::new();
    for parameter in monitor.rule.kind().parameters() {
        let text = sent.text(parameter.name);
        if text.is_empty() {
            continue;
        }
        let value = text.parse::<u32>();
        let refuse = |_| {
            Failure::Invalid(format!("the parameter {} must be a whole number", parameter.name))
        };
        given.push((parameter.name, value.map_err(refuse)?));
    }
    Ok(Monitor { rule: monitor.rule.with(&given), ..monitor })
}

/// Creates, changes or deletes a monitor; returns where to go.
pub(super) async fn change(
    pages: &Pages,
    visitor: &Visitor,
    place: &TestsAddress,
    sent: &Asked,
) -> Result<String, Failure> {
    let (caller, repo) = (&visitor.caller, &place.repo);
    let settings = pages.flaky.settings(caller, repo).await?;
    let chosen = Chosen::find(&settings, sent.text("monitor")).ok_or(Failure::Missing)?;
    let id = chosen.monitor.id;
    let turned = async |enabled| {
        let turn = |monitor: &Monitor| Ok(Monitor { enabled, ..monitor.clone() });
        pages.flaky.update_monitor(caller, repo, id, turn).await
    };
    let said = match (sent.text("change"), chosen.is_new) {
        ("save", true) => {
            let monitor = with_parameters(chosen.monitor, sent)?;
            pages.flaky.create_monitor(caller, repo, monitor).await?;
            "monitor-created"
        }
        ("save", false) => {
            let rule = with_parameters(chosen.monitor, sent)?.rule;
            let replace = |monitor: &Monitor| Ok(Monitor { rule, ..monitor.clone() });
            pages.flaky.update_monitor(caller, repo, id, replace).await?;
            "monitor-changed"
        }
        ("on", false) => {
            turned(true).await?;
            "monitor-on"
        }
        ("off", false) => {
            turned(false).await?;
            "monitor-off"
        }
        ("delete", false) => {
            pages.flaky.delete_monitor(caller, repo, id).await?;
            "monitor-deleted"
        }
        _ => return Err(Failure::Invalid("unknown change".to_owned())),
    };
    Ok(format!("{}&said={said}", place.path("flaky-tests/monitors")))
}
