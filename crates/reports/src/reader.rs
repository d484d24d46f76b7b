//! The domain's port for reading uploads, on the readers of this crate.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Read};
use std::ops::ControlFlow;

use async_trait::async_trait;
use prost::Message;
use sha2::{Digest, Sha256};
use signalbox_domain::flaky::UploadSource;
use signalbox_domain::ports::{ReadError, ReportFile, ReportReader};
use signalbox_domain::upload::{BundleMeta, Claims, ContentHash, FoundFile, FoundReport, FoundRun};

use crate::budget::{Budget, NAMES};
use crate::bundle::internal::{Report, TestCaseRun};
use crate::bundle::{self, BundleError, BundleLimits, Member, Meta};
use crate::convert::{self, Identity};
use crate::junit::{self, JunitError, Limits};
use crate::{ndjson, reruns};

/// Reads uploads. It is CPU-bound and never waits: call it on a blocking
/// thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reports {
    limits: BundleLimits,
}

impl Reports {
    /// A reader with these limits of bundles.
    pub const fn new(limits: BundleLimits) -> Self {
        Self { limits }
    }
}

#[async_trait]
impl ReportReader for Reports {
    async fn read(
        &self,
        source: UploadSource,
        files: Vec<ReportFile>,
        most_runs: usize,
    ) -> Result<FoundReport, ReadError> {
        let mut found = Finding::new(most_runs);
        match source {
            UploadSource::Bundle => {
                for file in files {
                    found.bundle(file, &self.limits)?;
                }
            }
            UploadSource::JUnit | UploadSource::Checks => {
                for mut file in files {
                    found.junit(file.name, &mut file.content, &[])?;
                }
            }
            UploadSource::Import => {
                for file in files {
                    found.imported(file, &self.limits)?;
                }
            }
        }
        found.finish()
    }

    fn line(&self, line: &[u8]) -> Result<Claims, String> {
        ndjson::Run::parse(line).map(|run| run.claims())
    }
}

/// What `internal.bin` adds to a test of an XML file.
#[derive(Default)]
struct Addition {
    owners: Vec<String>,
    quarantined: bool,
}

/// The results so far.
struct Finding {
    most_runs: usize,
    budget: Budget,
    /// Whether the names of all runs fitted into it.
    fits: bool,
    meta: Option<BundleMeta>,
    file_owners: BTreeMap<String, Vec<String>>,
    runs: Vec<FoundRun>,
    files: Vec<FoundFile>,
    /// Runs of `internal.bin`, kept back until it is known which tests the XML files have.
    internal: Vec<FoundRun>,
    additions: HashMap<Identity, Addition>,
    hashes: Vec<ContentHash>,
    internal_hashes: Vec<ContentHash>,
}

impl Finding {
    fn new(most_runs: usize) -> Self {
        Self {
            most_runs,
            budget: Budget::default(),
            fits: true,
            meta: None,
            file_owners: BTreeMap::new(),
            runs: Vec::new(),
            files: Vec::new(),
            internal: Vec::new(),
            additions: HashMap::new(),
            hashes: Vec::new(),
            internal_hashes: Vec::new(),
        }
    }

    /// Refuses more runs, or more of their names, than there may be.
    fn within_limits(&self) -> Result<(), ReadError> {
        if self.runs.len().max(self.internal.len()) > self.most_runs {
            let most = self.most_runs;
            return Err(ReadError::Refused(format!("more than {most} test runs")));
        }
        if !self.fits {
            let rule = format!("the names of the tests exceed {NAMES} bytes");
            return Err(ReadError::Refused(rule));
        }
        Ok(())
    }

    /// Reads a file of the past: what it is follows from how it begins.
    fn imported(&mut self, file: ReportFile, limits: &BundleLimits) -> Result<(), ReadError> {
        let ReportFile { name, mut content } = file;
        let unavailable = |error: io::Error| ReadError::Unavailable(error.to_string());
        let mut start = Vec::new();
        content.by_ref().take(4).read_to_end(&mut start).map_err(unavailable)?;
        let kind = Kind::of(&start);
        let mut content = io::Cursor::new(start).chain(content);
        match kind {
            Kind::Bundle => self.bundle(ReportFile { name, content: Box::new(content) }, limits),
            Kind::Junit => self.junit(name, &mut content, &[]),
            Kind::Line => {
                let mut line = Vec::new();
                let most = u64::try_from(ndjson::LINE_BYTES).unwrap_or(u64::MAX);
                content.take(most + 1).read_to_end(&mut line).map_err(unavailable)?;
                self.line(name, &line)
            }
        }
    }

    fn line(&mut self, name: String, line: &[u8]) -> Result<(), ReadError> {
        let run = ndjson::Run::parse(line);
        let run = run.map_err(|problem| ReadError::Refused(format!("{name}: {problem}")))?;
        let before = self.runs.len();
        for mut found in run.into_runs() {
            self.fits &= self.budget.take(&mut found);
            self.runs.push(found);
            self.within_limits()?;
        }
        self.files.push(file(name, self.runs.len() - before, None));
        self.hashes.push(ContentHash::of(line));
        Ok(())
    }

    fn bundle(&mut self, file: ReportFile, limits: &BundleLimits) -> Result<(), ReadError> {
        let mut refused = None;
        let read = bundle::read(file.content, limits, |member| match self.member(member) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                refused = Some(error);
                ControlFlow::Break(())
            }
        });
        if let Some(error) = refused {
            return Err(error);
        }
        read.map(drop).map_err(|error| match error {
            BundleError::Io(error) => ReadError::Unavailable(error.to_string()),
            error => ReadError::Refused(error.to_string()),
        })
    }

    fn member(&mut self, member: Member<'_>) -> Result<(), ReadError> {
        match member {
            Member::Meta(meta) => self.meta(*meta),
            Member::Internal { index, report } => {
                let name =
                    index.map_or_else(|| "internal.bin".to_owned(), |it| format!("internal/{it}"));
                match report.and_then(|report| self.internal(&report).map(|()| report)) {
                    Ok(report) => self.files.push(file(name, report.runs(), None)),
                    Err(error) => self.files.push(file(name, 0, Some(error.to_string()))),
                }
                self.within_limits()?;
            }
            Member::Junit { index, content } => {
                let name = format!("junit/{index}");
                let owners = self.file_owners.get(&name).cloned().unwrap_or_default();
                self.junit(name, content, &owners)?;
            }
            Member::Codeowners(_) | Member::BazelEvents(_) => {}
        }
        Ok(())
    }

    fn meta(&mut self, meta: Meta) {
        for file in meta.file_sets.iter().flat_map(|set| &set.files) {
            self.file_owners.insert(file.path.clone(), file.owners.clone());
        }
        self.meta = Some(convert::meta(meta));
    }

    /// Stops at the first run that is one too many.
    fn internal(&mut self, report: &Report) -> Result<(), bundle::internal::InternalError> {
        // Writers without a command line put the variant here only.
        if let (Some(meta), Some(uploader)) = (&mut self.meta, report.uploader())
            && meta.variant.is_empty()
        {
            meta.variant.clone_from(&uploader.variant);
        }
        let mut hash = Sha256::new();
        let _stopped = report.each(|_, run: TestCaseRun| {
            hash.update(run.encode_to_vec());
            let mut found = convert::internal_run(run);
            self.fits &= self.budget.take(&mut found);
            let addition = self.additions.entry(convert::identity(&found)).or_default();
            addition.quarantined |= found.quarantined;
            if addition.owners.is_empty() {
                addition.owners.clone_from(&found.owners);
            }
            self.internal.push(found);
            if self.internal.len() > self.most_runs || !self.fits {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        self.internal_hashes.push(ContentHash(hash.finalize().into()));
        Ok(())
    }

    /// Reads a JUnit file. Cases before an error are kept, and the error is reported.
    fn junit(
        &mut self,
        name: String,
        content: &mut dyn Read,
        owners: &[String],
    ) -> Result<(), ReadError> {
        let mut content = Hashing { input: content, hash: Sha256::new() };
        let before = self.runs.len();
        let read = junit::read(&mut content, &Limits::default(), |case| {
            let mut run = convert::case_run(case);
            let known = !self.additions.is_empty();
            let addition = known.then(|| convert::identity(&run));
            match addition.and_then(|identity| self.additions.get(&identity)) {
                Some(addition) => {
                    run.owners.clone_from(&addition.owners);
                    run.quarantined = addition.quarantined;
                }
                None => run.owners = owners.to_vec(),
            }
            self.fits &= self.budget.take(&mut run);
            self.runs.push(run);
            if self.runs.len() > self.most_runs || !self.fits {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        self.within_limits()?;
        let runs = self.runs.len() - before;
        match read {
            Ok(summary) => {
                reruns::mark(self.runs.get_mut(before..).unwrap_or_default(), &summary);
                self.files.push(file(name, runs, None));
            }
            // The limits of a bundle come through as this too; its reader then refuses it.
            Err(JunitError::Io(error)) => {
                self.files.push(file(name, runs, Some(format!("could not read it: {error}"))));
                return Ok(());
            }
            Err(error) => {
                let at = error.position();
                let mut file = file(name, runs, Some(error.to_string()));
                (file.line, file.column) = (at.map(|it| it.line), at.map(|it| it.column));
                self.files.push(file);
            }
        }
        // Bytes after the end of the report belong to the file as well.
        if io::copy(&mut content, &mut io::sink()).is_ok() {
            self.hashes.push(ContentHash(content.hash.finalize().into()));
        }
        Ok(())
    }

    fn finish(mut self) -> Result<FoundReport, ReadError> {
        // XML files have more details: only tests that they do not have are taken from the message.
        let internal = std::mem::take(&mut self.internal);
        if !internal.is_empty() {
            let known: HashSet<Identity> = self.runs.iter().map(convert::identity).collect();
            let unknown = |run: &FoundRun| !known.contains(&convert::identity(run));
            self.runs.extend(internal.into_iter().filter(unknown));
        }
        self.within_limits()?;
        // The message has the time of the upload in it, so the files count where there are any.
        let mut hashes = if self.hashes.is_empty() { self.internal_hashes } else { self.hashes };
        hashes.sort_unstable();
        let texts: Vec<String> = hashes.iter().map(ToString::to_string).collect();
        Ok(FoundReport {
            meta: self.meta,
            runs: self.runs,
            files: self.files,
            digest: ContentHash::of_parts(texts.iter().map(String::as_str)),
        })
    }
}

/// A text without the mark that says that it is UTF-8.
pub(crate) fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

/// What an imported file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A bundle of the public uploader: it begins like zstd.
    Bundle,
    /// NDJSON: it begins with a bracket of an object.
    Line,
    /// Anything else must be JUnit XML.
    Junit,
}

impl Kind {
    /// What a file is that begins so; 4 bytes are enough.
    pub fn of(start: &[u8]) -> Self {
        if start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            Self::Bundle
        } else if without_mark(start).trim_ascii_start().starts_with(b"{") {
            Self::Line
        } else {
            Self::Junit
        }
    }
}

fn file(name: String, runs: usize, problem: Option<String>) -> FoundFile {
    let runs = u32::try_from(runs).unwrap_or(u32::MAX);
    FoundFile { name, runs, problem, line: None, column: None }
}

/// Hashes the bytes that are read.
struct Hashing<'a> {
    input: &'a mut dyn Read,
    hash: Sha256,
}

impl Read for Hashing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.hash.update(buffer.get(..read).unwrap_or_default());
        Ok(read)
    }
}
