//! Events of imports: results of the past.

use schemars::JsonSchema;
use serde::Serialize;
use signalbox_domain::flaky::{IMPORT_FINISHED, ImportSummary};
use signalbox_domain::ids::{RepoId, RepoName};
use signalbox_domain::time::Timestamp;

use super::catalog::EventType;
use super::shapes::{Id, Time, Url};
use super::test_case::repository_url;
use super::{PublicEvent, public_event};

/// The events that are declared here.
pub(super) static EVENTS: &[EventType] = &[EventType::of::<ImportFinished>()];

public_event! {
    /// Results of the past were imported. The only event of an import: changes of tests and incidents
    /// in the past send none.
    ImportFinished = IMPORT_FINISHED;
    {
        timestamp: Time,
        import: FinishedImport,
        tests: JudgedTests,
        repository: ImportRepository,
    }
    optional {}
}

/// What was imported since the event before. Times are the ends of the first and the last run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct FinishedImport {
    uploads: u32,
    test_runs: u64,
    from: Time,
    until: Time,
}

/// The tests of the repository that are flaky or broken after the import.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct JudgedTests {
    flaky: u64,
    broken: u64,
}

/// The repository of an import.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct ImportRepository {
    id: Id,
    html_url: Url,
}

/// What leaves the house for an event.
pub(super) fn payload(
    (id, name): (RepoId, &RepoName),
    summary: &ImportSummary,
    at: Timestamp,
) -> String {
    let imported = summary.imported;
    let time = |of: fn(&signalbox_domain::flaky::Imported) -> Timestamp| {
        Time::from(imported.as_ref().map_or(at, of))
    };
    ImportFinished {
        name: ImportFinished::NAME,
        timestamp: at.into(),
        import: FinishedImport {
            uploads: imported.map_or(0, |it| it.uploads),
            test_runs: imported.map_or(0, |it| it.runs),
            from: time(|it| it.from),
            until: time(|it| it.until),
        },
        tests: JudgedTests { flaky: summary.flaky, broken: summary.broken },
        repository: ImportRepository { id: Id(id.to_string()), html_url: repository_url(name) },
    }
    .payload()
}
