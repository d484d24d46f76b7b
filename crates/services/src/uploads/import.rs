//! Runs of the past come in, each as an upload that counts as of its own time.

use signalbox_domain::flaky::{UploadId, UploadSource};
use signalbox_domain::ids::RepoName;
use signalbox_domain::ports::Repository;
use signalbox_domain::upload::{Claims, RefusedTime, check_time};

use super::{Error, Intake, Sender, UploadService};

/// A line that is not imported because of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusedLine {
    /// Its number, from 1.
    pub line: usize,
    /// Why.
    pub reason: RefusedTime,
}

/// The outcome of sending lines of NDJSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportedLines {
    /// Lines with their uploads, and whether these came before; in the order of their times.
    pub uploads: Vec<(usize, UploadId, bool)>,
    /// Lines that are not imported, in order.
    pub refused: Vec<RefusedLine>,
}

/// Why lines of NDJSON were not imported; then none was.
#[derive(Debug)]
pub enum ImportRefusal {
    /// Lines are malformed: the number of each, and its problem.
    Lines(Vec<(usize, String)>),
    /// The request was refused, or a store failed.
    Error(Error),
}

impl<E: Into<Error>> From<E> for ImportRefusal {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

/// The most malformed lines that are reported.
const REPORTED: usize = 20;

impl UploadService {
    /// Begins to take an imported run. A given time is checked.
    pub async fn import(
        &self,
        sender: &Sender,
        repo: &RepoName,
        claims: Claims,
    ) -> Result<Result<Intake, RefusedTime>, Error> {
        sender.may_import()?;
        let repository = self.repository_for(sender, repo).await?;
        if let Some(refused) = claims.at.and_then(|at| self.refused(at)) {
            return Ok(Err(refused));
        }
        Ok(Ok(self.begin(&repository, UploadSource::Import, sender, claims)))
    }

    /// Imports lines of NDJSON, each an upload, in the order of their times. When a line is
    /// malformed, none is imported. Empty lines are skipped.
    pub async fn import_lines(
        &self,
        sender: &Sender,
        repo: &RepoName,
        text: &[u8],
    ) -> Result<ImportedLines, ImportRefusal> {
        sender.may_import()?;
        let (mut lines, mut problems) = (Vec::new(), Vec::new());
        let all = text.split(|byte| *byte == b'\n').enumerate();
        for (at, line) in all.filter(|(_, line)| !line.trim_ascii().is_empty()) {
            match self.parts.reader.line(line) {
                Ok(claims) => lines.push((at + 1, claims, line)),
                Err(problem) if problems.len() < REPORTED => problems.push((at + 1, problem)),
                Err(_) => break,
            }
        }
        if !problems.is_empty() {
            return Err(ImportRefusal::Lines(problems));
        }
        let repository = self.repository_for(sender, repo).await?;
        let mut imported = ImportedLines::default();
        lines.retain(|(line, claims, _)| {
            let refused = claims.at.and_then(|at| self.refused(at));
            let refused = refused.map(|reason| RefusedLine { line: *line, reason });
            imported.refused.extend(refused);
            refused.is_none()
        });
        lines.sort_by_key(|(_, claims, _)| claims.at);
        for (number, claims, line) in lines {
            let taken = self.import_line(sender, &repository, claims, line).await?;
            imported.uploads.push((number, taken.id, taken.is_known));
        }
        Ok(imported)
    }

    async fn import_line(
        &self,
        sender: &Sender,
        repository: &Repository,
        claims: Claims,
        line: &[u8],
    ) -> Result<super::Taken, Error> {
        let mut intake = self.begin(repository, UploadSource::Import, sender, claims);
        self.next_file(&mut intake, "run.ndjson").await?;
        intake.write(line.trim_ascii()).await?;
        self.complete_and_tell(intake).await
    }

    fn refused(&self, at: signalbox_domain::time::Timestamp) -> Option<RefusedTime> {
        check_time(at, self.context.clock.now(), self.limits.history).err()
    }
}
