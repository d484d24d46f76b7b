//! Uploads of test results, and their outcomes.

use signalbox_domain::flaky::Admission;
use signalbox_domain::time::{Span, Timestamp};
use signalbox_domain::upload::UploadRecord;
use signalbox_wording::{Tone, upload_warning};

use super::test_list::TestsAddress;
use crate::model::{Block, Cell, Page, Section, Table};
use crate::text::{ago, elsewhere, plain};

/// A size in at most four digits.
fn size(bytes: u64) -> String {
    match bytes {
        ..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{} KB", bytes / 1_000),
        10_000_000.. => format!("{} MB", bytes / 1_000_000),
    }
}

/// The page.
pub(crate) fn page(
    place: &TestsAddress,
    uploads: &[UploadRecord],
    next: Option<String>,
    now: Timestamp,
) -> Page {
    let heads =
        ["When", "State", "Commit", "Branch", "Job", "#Tests", "#Failed", "#Size", "Warnings"];
    let mut table = Table::new("uploads", "Uploads", &heads)
        .empty("No uploads yet. The page of tests shows how to upload results.");
    for upload in uploads {
        let claims = &upload.claims;
        let sha: String = claims.sha.as_deref().unwrap_or("–").chars().take(12).collect();
        let (tests, failed, aside) = upload.taken_in.as_ref().map_or((0, 0, false), |it| {
            (it.tests, it.failed, !matches!(it.admission, Admission::Counts))
        });
        let mut state = Cell::named(&upload.state)
            .sub(plain(upload.problem.as_deref().unwrap_or_default(), 200));
        if aside {
            state.mark = Some("excluded");
        }
        let job = claims.job_name.as_deref().unwrap_or("–");
        let bytes = upload.received.as_ref().map_or(0, signalbox_domain::upload::Received::bytes);
        let troubles = upload.files.iter().filter_map(|file| {
            let problem = file.problem.as_deref()?;
            let line = file.line.map(|line| format!(", line {line}")).unwrap_or_default();
            Some(format!("{}: {}{line}", plain(&file.name, 80), plain(problem, 160)))
        });
        let warnings = upload.warnings.iter().map(|it| upload_warning(it.kind).to_owned());
        let troubles: Vec<String> = troubles.take(3).chain(warnings.take(5)).collect();
        let warned = match upload.warnings.len() {
            0 => "–".to_owned(),
            many => format!("{many}"),
        };
        table.push(
            upload.id,
            vec![
                ago(upload.created_at, now),
                state,
                Cell::code(plain(&sha, 12)),
                Cell::cut(claims.branch.as_deref().unwrap_or("–")),
                Cell::cut(job).maybe_link(claims.job_url.as_deref().and_then(elsewhere)),
                Cell::number(tests),
                Cell::number(failed),
                Cell::number(size(bytes)),
                Cell::text(warned).sub(troubles.join("; ")),
            ],
        );
    }
    table.more = next;
    let mut section = Section::plain("list");
    let last = uploads.first().map(|it| it.created_at);
    if let Some(last) = last.filter(|at| *at < now.minus(Span::hours(24))) {
        let text = format!("The last upload came {}.", ago(last, now).text);
        section = section.with(Block::notice(Tone::Warning, "clock", "No upload in 24 h.", &text));
    }
    Page {
        title: format!("Uploads of {}", place.name()),
        above: vec![Cell::text("Tests").link(format!("/{}/flaky-tests", place.org))],
        menu: place.menu("flaky-tests/uploads"),
        sections: vec![section.with(Block::Table(table))],
        topic: format!("tests:{}", place.id),
        only_hint: true,
        ..Page::default()
    }
}

#[cfg(test)]
mod tests {
    use signalbox_domain::flaky::{Trust, UploadId, UploadSource};
    use signalbox_domain::ids::{OrgId, RepoId, RepoName};
    use signalbox_domain::upload::{Claims, UploadWarning, WarningKind};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn warnings_are_sentences_and_job_links_lead_to_the_web_only() {
        let now = Timestamp::from_unix_seconds(100);
        let claims = Claims {
            job_name: Some("\u{202e}tests".to_owned()),
            job_url: Some("javascript:alert(1)".to_owned()),
            ..Claims::default()
        };
        let ids = (OrgId(Uuid::nil()), RepoId(Uuid::nil()));
        let from = (UploadSource::JUnit, Trust::Token);
        let mut upload = UploadRecord::awaited(UploadId(Uuid::nil()), ids, from, claims, now);
        upload.warnings = vec![UploadWarning { kind: WarningKind::ShaMissing, count: 0 }];
        let repo = RepoName::parse("git.test/acme/calc").expect("a name");
        let place = TestsAddress { org: "acme".to_owned(), id: ids.1, repo };
        let page = page(&place, &[upload], None, now);
        let mut blocks = page.sections.iter().flat_map(|it| &it.blocks);
        let found = blocks.find_map(|it| if let Block::Table(it) = it { Some(it) } else { None });
        let cells = &found.expect("a table").rows[0].cells;
        let text = |at: usize| (cells[at].text.as_str(), cells[at].href.as_deref());
        assert_eq!(text(4), ("\u{fffd}tests", None));
        assert_eq!(cells[8].text, "1");
        assert_eq!(cells[8].sub.as_deref(), Some(upload_warning(WarningKind::ShaMissing)));
    }
}
