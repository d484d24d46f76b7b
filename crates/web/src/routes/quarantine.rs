//! Which tests of a repository are quarantined: the choices, and the form that makes one.

use signalbox_domain::flaky::{AutoQuarantine, Settings, SettingsPatch, TestStatus};
use signalbox_domain::ports::Seek;
use signalbox_domain::token::Scope;
use signalbox_services::ListKind;

use crate::Pages;
use crate::failure::Failure;
use crate::view::quarantine::{Choice, Counts};
use crate::view::test_list::TestsAddress;
use crate::visitor::{Asked, Visitor};

/// How many tests are flaky, and how many are broken; not read for a visitor who cannot choose.
pub(super) async fn counts(
    pages: &Pages,
    visitor: &Visitor,
    place: &TestsAddress,
) -> Result<Counts, Failure> {
    if !visitor.may_send(Scope::TestsAdmin) {
        return Ok(Counts::default());
    }
    let of = async |status| {
        let (kind, seek) = (ListKind::Unhealthy(status), Seek::After(None));
        let listed = pages.flaky.list(&visitor.caller, &place.repo, kind, seek, 1, true).await?;
        Ok::<_, Failure>(listed.total.unwrap_or_default())
    };
    Ok(Counts { flaky: of(TestStatus::Flaky).await?, broken: of(TestStatus::Broken).await? })
}

/// Makes the choice of the form.
pub(super) async fn choose(
    pages: &Pages,
    visitor: &Visitor,
    place: &TestsAddress,
    sent: &Asked,
) -> Result<String, Failure> {
    let choice = Choice::parse(sent.text("choice"));
    let choice = choice.ok_or_else(|| Failure::Invalid("unknown choice".to_owned()))?;
    let (enabled, auto) = match choice {
        Choice::Off => (false, AutoQuarantine::Off),
        Choice::Auto(auto) => (true, auto),
    };
    let patch = |_: &Settings| SettingsPatch {
        quarantine_enabled: Some(enabled),
        auto_quarantine: Some(auto),
        ..SettingsPatch::default()
    };
    pages.flaky.update_settings(&visitor.caller, &place.repo, patch).await?;
    Ok(format!("{}&said=quarantine-settings", place.path("flaky-tests/quarantine")))
}
