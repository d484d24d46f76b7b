//! Events of tests.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use signalbox_domain::flaky::{Event, EventKind, Evidence, Reading, TestStatus};
use signalbox_domain::ports::TestSnapshot;

use super::catalog::EventType;
use super::shapes::{
    Id, MonitorKindWord, MonitorState, OverrideWord, Particulars, Share, Status, Time, TriggerWord,
    UpperStatus, Url,
};
use super::test_case::{CurrentStatus, Links, SlimTest, WholeTest, repository_url};
use super::{PublicEvent, public_event};

/// The events that are declared here.
pub(super) static EVENTS: &[EventType] = &[
    EventType::of::<StatusChanged>(),
    EventType::of::<QuarantiningSettingChanged>(),
    EventType::of::<StatusChangedV2>(),
    EventType::of::<MonitorStatusChanged>(),
    EventType::of::<Retired>(),
    EventType::of::<Returned>(),
    EventType::of::<NameChanged>(),
    EventType::of::<InvestigationCompleted>(),
];

/// Events of the catalog that Signalbox never emits: endpoints can subscribe to them, and get
/// them as a test.
pub const NEVER_CAUSED: &[&str] = &[InvestigationCompleted::NAME];

public_event! {
    /// The status of a test changed.
    StatusChanged = "test_case.status_changed";
    {
        test_case: WholeTest,
        status_change: StatusChange,
    }
    optional {}
}

/// A change of a status.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct StatusChange {
    previous_status: Status,
    current_status: CurrentStatus,
}

public_event! {
    /// The quarantine override of a test changed: a user set it, or it expired.
    QuarantiningSettingChanged = "test_case.quarantining_setting_changed";
    {
        test_case: WholeTest,
        quarantine_setting_changed: SettingChange,
    }
    optional {}
}

/// A change of the quarantine override.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct SettingChange {
    actor: Person,
    reason: Option<String>,
    timestamp: Time,
    previous_quarantining_setting: OverrideWord,
    updated_quarantining_setting: OverrideWord,
}

/// Who changed it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Person {
    full_name: String,
    email: String,
}

public_event! {
    /// The status of a test changed: a second form of `test_case.status_changed`, emitted with it.
    StatusChangedV2 = "v2.test_case.status_changed";
    {
        timestamp: Time,
        previous_status: UpperStatus,
        new_status: UpperStatus,
        triggered_by: TriggeredBy,
        repository: KnownRepository,
        test_case: SlimTest,
    }
    optional {}
}

/// What triggered a change of status.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "these are the names of the payload")]
struct TriggeredBy {
    monitor_id: Option<Id>,
    monitor_type: TriggerWord,
    monitor_status: MonitorState,
}

/// A repository by its id.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct KnownRepository {
    id: Id,
    html_url: Url,
}

public_event! {
    /// A monitor became active for a test, or resolved.
    MonitorStatusChanged = "test_case.monitor_status_changed";
    {
        timestamp: Time,
        monitor: KnownMonitor,
        evidence: Particulars,
        repository: KnownRepository,
        test_case: SlimTest,
    }
    optional {}
}

/// A monitor with its status.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct KnownMonitor {
    id: Id,
    r#type: MonitorKindWord,
    status: MonitorState,
}

public_event! {
    /// Stable branches no longer contain a test: it is healthy, is not quarantined, and is in no list.
    Retired = "test_case.retired";
    {
        timestamp: Time,
        missing_since: Time,
        commits: u32,
        repository: KnownRepository,
        test_case: SlimTest,
    }
    optional {
        renamed_to: Id,
    }
}

public_event! {
    /// A stable branch contains a retired test again: what was found and decided before holds again.
    Returned = "test_case.returned";
    {
        timestamp: Time,
        repository: KnownRepository,
        test_case: SlimTest,
    }
    optional {}
}

public_event! {
    /// Another test was renamed to this one, which takes over what was found and decided.
    NameChanged = "test_case.renamed";
    {
        timestamp: Time,
        renamed_from: Id,
        repository: KnownRepository,
        test_case: SlimTest,
    }
    optional {}
}

public_event! {
    /// An investigation of a test's failures has ended. Signalbox makes no investigations: it sends
    /// this event only as a test.
    InvestigationCompleted = "test_case.investigation_completed";
    {
        investigation_id: Id,
        confidence: Share,
        created_at: Time,
        markdown_summary: String,
        failure_message: String,
        facts: Vec<InvestigatedFact>,
        repository: KnownRepository,
        test_case: SlimTest,
    }
    optional {}
}

/// What an investigation has found.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct InvestigatedFact {
    fact_type: String,
    content: String,
    confidence: Share,
}

/// What leaves the house for an event.
pub(super) fn payload(links: &Links, snapshot: &TestSnapshot, event: &Event) -> String {
    let repository = || KnownRepository {
        id: Id(snapshot.record.test.repo.to_string()),
        html_url: repository_url(&snapshot.repo),
    };
    let whole = || WholeTest::of(links, snapshot, event);
    let slim = || SlimTest::of(links, snapshot, event);
    match &event.kind {
        EventKind::StatusChanged { previous, current } => StatusChanged {
            name: StatusChanged::NAME,
            test_case: whole(),
            status_change: StatusChange {
                previous_status: Status(previous.as_str()),
                current_status: current.into(),
            },
        }
        .payload(),
        EventKind::QuarantiningSettingChanged { actor, reason, previous, updated } => {
            QuarantiningSettingChanged {
                name: QuarantiningSettingChanged::NAME,
                test_case: whole(),
                quarantine_setting_changed: SettingChange {
                    actor: Person {
                        full_name: actor.full_name.clone(),
                        email: actor.email.clone(),
                    },
                    reason: reason.clone(),
                    timestamp: event.at.into(),
                    previous_quarantining_setting: OverrideWord(previous.as_str()),
                    updated_quarantining_setting: OverrideWord(updated.as_str()),
                },
            }
            .payload()
        }
        EventKind::StatusChangedV2 { previous, new, triggered_by } => StatusChangedV2 {
            name: StatusChangedV2::NAME,
            timestamp: event.at.into(),
            previous_status: upper(*previous),
            new_status: upper(*new),
            triggered_by: TriggeredBy {
                monitor_id: triggered_by.monitor.map(|id| Id(id.to_string())),
                monitor_type: TriggerWord(triggered_by.kind.as_str()),
                monitor_status: MonitorState(triggered_by.status.as_str()),
            },
            repository: repository(),
            test_case: slim(),
        }
        .payload(),
        EventKind::MonitorStatusChanged { monitor, kind, status, evidence } => {
            MonitorStatusChanged {
                name: MonitorStatusChanged::NAME,
                timestamp: event.at.into(),
                monitor: KnownMonitor {
                    id: Id(monitor.to_string()),
                    r#type: MonitorKindWord(kind.as_str()),
                    status: MonitorState(status.as_str()),
                },
                evidence: evidence.as_ref().map(particulars).unwrap_or_default(),
                repository: repository(),
                test_case: slim(),
            }
            .payload()
        }
        EventKind::Retired(retirement) => Retired {
            name: Retired::NAME,
            timestamp: event.at.into(),
            missing_since: retirement.missing_since.into(),
            commits: retirement.commits,
            renamed_to: retirement.renamed_to.map(|id| Id(id.to_string())),
            repository: repository(),
            test_case: slim(),
        }
        .payload(),
        EventKind::Renamed { from } => NameChanged {
            name: NameChanged::NAME,
            timestamp: event.at.into(),
            renamed_from: Id(from.to_string()),
            repository: repository(),
            test_case: slim(),
        }
        .payload(),
        EventKind::Returned => Returned {
            name: Returned::NAME,
            timestamp: event.at.into(),
            repository: repository(),
            test_case: slim(),
        }
        .payload(),
    }
}

fn upper(status: TestStatus) -> UpperStatus {
    UpperStatus(status.as_str().to_uppercase())
}

/// The evidence of a monitor.
fn particulars(reading: &Reading) -> Particulars {
    let summary = ("summary".to_owned(), json!(reading.to_string()));
    let seen = reading.evidence().into_iter().map(|(name, evidence)| {
        let value = match evidence {
            Evidence::Count(count) => json!(count),
            Evidence::Time(at) => json!(at.map(|at| at.to_string())),
            Evidence::Word(word) => json!(word),
        };
        (name.to_owned(), value)
    });
    Particulars([summary].into_iter().chain(seen).collect())
}
