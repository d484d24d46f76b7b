//! A queue that Terraform manages: its badge, what was changed outside Terraform, and the confirmation
//! of such a change.

use signalbox_domain::queue::{Drift, Header, ManagedState, Management, QueueStateName, setting};
use signalbox_domain::time::Timestamp;
use signalbox_wording::{Named, Tone};

use crate::failure::Failure;
use crate::model::{Block, Cell, Field, Section, Table};
use crate::text::{ago, plain};
use crate::visitor::Asked;

/// The field of a form that confirms a change outside Terraform, and its value.
const CONFIRM: &str = "confirm";
const CONFIRMED: &str = "terraform";

/// The badge beside the heading; none for a queue that Terraform has never changed.
pub(crate) fn badge(header: &Header) -> Vec<Cell> {
    match header.managed_state() {
        ManagedState::Manual => Vec::new(),
        state @ (ManagedState::Terraform | ManagedState::TerraformWithDrift) => {
            vec![Cell::named(&state)]
        }
    }
}

/// The warning of a form that changes the state.
pub(crate) fn note(header: &Header) -> String {
    match header.management {
        Some(_) => "Terraform manages this queue. Its next apply may undo the change.".to_owned(),
        None => String::new(),
    }
}

/// The warning before the form, and what was changed outside Terraform.
pub(crate) fn section(header: &Header, now: Timestamp) -> Option<Section> {
    let management = header.management.as_ref()?;
    let Management { applied_by, applied_at, drift } = management;
    let title = header.managed_state().named().label;
    let text = format!(
        "{} ran Terraform {}. Change the settings in its configuration: the next apply may undo \
         what is changed here.",
        plain(&applied_by.to_string(), 100),
        ago(*applied_at, now).text,
    );
    let notice = Block::notice(Tone::Warning, "warning", &format!("{title}."), &text);
    let section = Section::plain("management").with(notice);
    if drift.is_empty() {
        return Some(section);
    }
    let heads = ["Setting", "Applied by Terraform", "Now", "Changed by", "When"];
    let mut table = Table::new("drift", "Changed since Terraform last applied", &heads);
    table.quiet_caption = false;
    for one in drift {
        let Drift { field, applied, by, at } = one;
        let (title, applied, current) = values(header, field, applied.as_deref());
        let cells = [title, applied, current, plain(&by.to_string(), 100)];
        let mut cells: Vec<Cell> = cells.map(Cell::text).into();
        cells.push(ago(*at, now));
        table.push(field, cells);
    }
    Some(section.with(Block::Table(table)))
}

/// The title of a field, its value when Terraform last applied, and its value now.
fn values(header: &Header, field: &str, applied: Option<&str>) -> (String, String, String) {
    let shown = |text: Option<&str>| {
        text.filter(|text| !text.is_empty()).map_or("–".to_owned(), |text| plain(text, 500))
    };
    let Some(spec) = setting(field) else {
        let label = |state: QueueStateName| state.named().label.to_owned();
        let applied = applied.and_then(QueueStateName::parse).map_or_else(|| shown(applied), label);
        return ("State".to_owned(), applied, label(header.state.name()));
    };
    let current = spec.text(&header.settings);
    (spec.title.to_owned(), shown(applied), shown(current.as_deref()))
}

/// The fields by which a change is confirmed; none for a queue that Terraform does not manage.
pub(crate) fn confirmation(header: &Header) -> Vec<Field> {
    let field = |_: &Management| Field {
        name: CONFIRM,
        label: "Terraform".to_owned(),
        kind: "boxes",
        options: vec![(
            CONFIRMED.to_owned(),
            "Save although Terraform manages this queue".to_owned(),
        )],
        required: true,
        ..Field::default()
    };
    header.management.iter().map(field).collect()
}

/// Refuses a change that is not confirmed.
pub(crate) fn check(header: &Header, sent: &Asked) -> Result<(), Failure> {
    if header.management.is_none() || sent.text(CONFIRM) == CONFIRMED {
        return Ok(());
    }
    let why =
        "the settings were not saved: confirm the change, because Terraform manages this queue";
    Err(Failure::Invalid(why.to_owned()))
}
