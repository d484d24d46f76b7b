//! Reads and checks the files of an import. Nothing is sent before all are checked.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use signalbox_client::{PastForm, PastRun};
use signalbox_domain::flaky::UploadSource;
use signalbox_domain::ids::Sha;
use signalbox_domain::ports::{ReportFile, ReportReader};
use signalbox_domain::time::Timestamp;
use signalbox_domain::upload::{FoundReport, time_of_report};
use signalbox_reports::ndjson::{LINE_BYTES, Run as LineRun};
use signalbox_reports::{Kind, Reports};
use signalbox_terminal::note;

use super::layout::Layout;
use super::summary::Summary;
use crate::CliError;

/// The names that files in folders end with.
const ENDINGS: [&str; 6] = ["xml", "junit", "ndjson", "jsonl", "zst", "zstd"];
/// The most problems that are reported.
const REPORTED: usize = 20;

/// What is given about all JUnit files.
pub(super) struct Given {
    pub(super) repo: String,
    pub(super) branch: Option<String>,
    pub(super) sha: Option<String>,
    pub(super) job: Option<String>,
    pub(super) variant: Option<String>,
    pub(super) layout: Option<Layout>,
}

/// Where the results of a run are.
#[derive(Debug)]
pub(super) struct Place {
    file: PathBuf,
    offset: u64,
    bytes: u64,
}

impl Place {
    /// The bytes of the results.
    pub(super) fn read(&self) -> Result<Vec<u8>, CliError> {
        let read = || {
            let mut file = File::open(&self.file)?;
            file.seek(SeekFrom::Start(self.offset))?;
            let mut bytes = Vec::new();
            file.take(self.bytes).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        read().map_err(|error| CliError::File { file: self.file.clone(), error })
    }
}

/// A run of the past.
#[derive(Debug)]
pub(super) struct PastResults {
    /// The file, with the line in NDJSON.
    pub(super) name: String,
    /// When it ended.
    pub(super) at: Timestamp,
    /// Attempts of tests.
    pub(super) results: u64,
    /// Identities of its tests, hashed.
    pub(super) tests: Vec<u64>,
    pub(super) form: PastForm,
    pub(super) run: PastRun,
    pub(super) place: Place,
}

/// What the files have.
pub(super) struct Found {
    pub(super) runs: Vec<PastResults>,
    /// With the runs that cannot be imported.
    pub(super) summary: Summary,
}

/// Reads all files. Prints each problem with its file, line and rule; the error is their number.
pub(super) async fn read(paths: &[PathBuf], given: &Given) -> Result<Found, CliError> {
    let mut files = Vec::new();
    for path in paths {
        list(path, &mut files)?;
    }
    let mut reading = Reading {
        given,
        found: Found { runs: Vec::new(), summary: Summary::default() },
        problems: Vec::new(),
    };
    for file in files {
        reading.file(&file).await?;
        if reading.problems.len() >= REPORTED {
            break;
        }
    }
    if reading.problems.is_empty() {
        Ok(reading.found)
    } else {
        reading.problems.iter().for_each(|problem| note(problem));
        Err(CliError::Malformed { problems: reading.problems.len() })
    }
}

/// The file, or the files of a folder and of the folders in it, by name.
fn list(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), CliError> {
    let failed = |error| CliError::File { file: path.to_path_buf(), error };
    if !fs::metadata(path).map_err(failed)?.is_dir() {
        files.push(path.to_path_buf());
        return Ok(());
    }
    let entries = fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, io::Error>>);
    let mut entries: Vec<PathBuf> =
        entries.map_err(failed)?.into_iter().map(|entry| entry.path()).collect();
    entries.sort();
    for entry in entries {
        let ending = entry.extension().and_then(|it| it.to_str()).unwrap_or_default();
        if ENDINGS.contains(&ending) || (entry.is_dir() && !entry.is_symlink()) {
            list(&entry, files)?;
        }
    }
    Ok(())
}

struct Reading<'a> {
    given: &'a Given,
    found: Found,
    problems: Vec<String>,
}

impl Reading<'_> {
    async fn file(&mut self, path: &Path) -> Result<(), CliError> {
        self.found.summary.files += 1;
        let failed = |error| CliError::File { file: path.to_path_buf(), error };
        let mut file = File::open(path).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        let mut start = Vec::new();
        file.by_ref().take(4).read_to_end(&mut start).map_err(failed)?;
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        let kind = Kind::of(&start);
        if kind == Kind::Line {
            return self.lines(path, file).map_err(failed);
        }
        let name = path.display().to_string();
        let run = match self.run_of(path, kind) {
            Ok(run) => run,
            Err(problem) => {
                self.problems.push(format!("{name}: {problem}"));
                return Ok(());
            }
        };
        let report = ReportFile { name: name.clone(), content: Box::new(BufReader::new(file)) };
        let read = Reports::default().read(UploadSource::Import, vec![report], usize::MAX).await;
        let read = match read {
            Ok(read) => read,
            Err(error) => {
                self.problems.push(format!("{name}: {error}"));
                return Ok(());
            }
        };
        for file in read.files.iter().filter(|it| it.problem.is_some()) {
            let problem = file.problem.as_deref().unwrap_or_default();
            let within =
                if kind == Kind::Bundle { format!(" ({})", file.name) } else { String::new() };
            let place = match (file.line, file.column) {
                (Some(line), Some(column)) => format!(":{line}:{column}"),
                (Some(line), None) => format!(":{line}"),
                (None, _) => String::new(),
            };
            // The reader of XML names the position again.
            let repeated = problem.split_once(": ").filter(|(at, _)| at.starts_with("line "));
            let problem = repeated.map_or(problem, |(_, problem)| problem);
            self.problems.push(format!("{name}{place}{within}: {problem}"));
        }
        let form = if kind == Kind::Bundle { PastForm::Bundle } else { PastForm::Junit };
        let place = Place { file: path.to_path_buf(), offset: 0, bytes };
        self.report(name, form, run, place, &read);
        Ok(())
    }

    fn report(
        &mut self,
        name: String,
        form: PastForm,
        run: PastRun,
        place: Place,
        read: &FoundReport,
    ) {
        let summary = &mut self.found.summary;
        if read.runs.is_empty() {
            summary.refuse("no_tests", || format!("{name}: contains no tests"));
            return;
        }
        let Some(at) = time_of_report(read) else {
            summary.refuse("time_unknown", || {
                format!("{name}: no test has a start, so the time of the run is unknown")
            });
            return;
        };
        let variant = run.variant.clone().unwrap_or_default();
        let tests = read
            .runs
            .iter()
            .map(|it| hash(&[&it.parent, &it.classname, &it.file, &it.name, &it.info, &variant]));
        let tests = tests.collect();
        let results = u64::try_from(read.runs.len()).unwrap_or(u64::MAX);
        let run = PastRun { at: Some(at.to_string()), ..run };
        self.found.runs.push(PastResults { name, at, results, tests, form, run, place });
    }

    /// The commit, branch and job of a JUnit file. Bundles and NDJSON have their own.
    fn run_of(&self, path: &Path, kind: Kind) -> Result<PastRun, String> {
        let mut run = PastRun { repo: self.given.repo.clone(), ..PastRun::default() };
        if kind == Kind::Bundle {
            return Ok(run);
        }
        let given = self.given;
        (run.branch, run.sha) = (given.branch.clone(), given.sha.clone());
        (run.job, run.variant) = (given.job.clone(), given.variant.clone());
        if let Some(layout) = &given.layout {
            let values = layout.values(&path.to_string_lossy());
            let wrong = || format!("the path does not match the layout {:?}", layout.pattern());
            let mut values = values.ok_or_else(wrong)?;
            let mut take = |name: &str, of: &mut Option<String>| {
                if let Some(value) = values.remove(name) {
                    *of = Some(value);
                }
            };
            take("branch", &mut run.branch);
            take("sha", &mut run.sha);
            take("base", &mut run.base);
            take("job", &mut run.job);
            take("variant", &mut run.variant);
            if let Some(pr) = values.remove("pr") {
                let number = pr.parse().ok().filter(|pr| *pr > 0);
                let wrong = || format!("invalid pr {pr:?}: expected the number of a pull request");
                run.pr = Some(number.ok_or_else(wrong)?);
            }
        }
        for (name, sha) in [("sha", &run.sha), ("base", &run.base)] {
            let Some(sha) = sha else { continue };
            let sha = Sha::new(sha.to_ascii_lowercase());
            sha.map_err(|error| format!("invalid {name}: {error}"))?;
        }
        Ok(run)
    }

    fn lines(&mut self, path: &Path, file: File) -> io::Result<()> {
        let most = u64::try_from(LINE_BYTES).unwrap_or(u64::MAX).saturating_add(2);
        let mut input = BufReader::new(file);
        let (mut offset, mut number, mut line) = (0_u64, 0_u64, Vec::new());
        loop {
            line.clear();
            let read = input.by_ref().take(most).read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(());
            }
            number += 1;
            let bytes = u64::try_from(read).unwrap_or(u64::MAX);
            let name = format!("{}:{number}", path.display());
            let text = line.trim_ascii_end();
            if text.len() > LINE_BYTES {
                self.problems.push(format!("{name}: has more than {LINE_BYTES} bytes"));
                return Ok(());
            }
            if !text.is_empty() {
                let place = Place { file: path.to_path_buf(), offset, bytes };
                self.line(name, text, place);
            }
            if self.problems.len() >= REPORTED {
                return Ok(());
            }
            offset = offset.saturating_add(bytes);
        }
    }

    fn line(&mut self, name: String, text: &[u8], place: Place) {
        let read = match LineRun::parse(text) {
            Ok(read) => read,
            Err(problem) => return self.problems.push(format!("{name}: {problem}")),
        };
        let (at, variant) = (read.at(), read.claims().variant);
        let runs = read
            .into_runs()
            .map(|it| hash(&[&it.parent, &it.classname, &it.file, &it.name, &it.info, &variant]));
        let tests: Vec<u64> = runs.collect();
        let results = u64::try_from(tests.len()).unwrap_or(u64::MAX);
        let run = PastRun { repo: self.given.repo.clone(), ..PastRun::default() };
        let form = PastForm::Ndjson;
        self.found.runs.push(PastResults { name, at, results, tests, form, run, place });
    }
}

/// A hash of texts; where one ends and the next begins makes a difference.
fn hash(parts: &[&String]) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}
