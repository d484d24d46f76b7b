//! The test case that is being read, and its attempts.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::ops::ControlFlow;
use std::time::Duration;

use time::OffsetDateTime;

use super::text::Kept;
use super::{CaseRun, Detail, Status};

/// The position of an attempt relative to the case's own result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptOrder {
    /// `flakyFailure` and `flakyError`: before it.
    Before,
    /// `failure`, `error` and `skipped`: itself.
    Itself,
    /// `rerunFailure` and `rerunError`: after it, unless it passed: then before.
    After,
}

#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) place: AttemptOrder,
    pub(super) status: Status,
    pub(super) duration: Option<Duration>,
    pub(super) timestamp: Option<OffsetDateTime>,
    pub(super) message: Kept,
    pub(super) kind: Kept,
    pub(super) text: Kept,
}

impl Attempt {
    pub(super) fn new(place: AttemptOrder, status: Status) -> Self {
        Self {
            place,
            status,
            duration: None,
            timestamp: None,
            message: Kept::default(),
            kind: Kept::default(),
            text: Kept::default(),
        }
    }

    fn detail(&self) -> Option<Detail<'_>> {
        let (message, kind, text) = (self.message.some(), self.kind.some(), self.text.some());
        let says = message.or(kind).or(text).is_some();
        says.then_some(Detail { message, kind, text })
    }
}

/// A suite that is open.
#[derive(Debug, Default)]
pub(super) struct Suite {
    pub(super) file: Kept,
    pub(super) filepath: Kept,
    pub(super) timestamp: Option<OffsetDateTime>,
}

/// Attributes and children of a case; cleared and used again for the next one.
#[derive(Debug, Default)]
pub(super) struct Case {
    pub(super) name: Kept,
    pub(super) classname: Kept,
    pub(super) class: Kept,
    pub(super) file: Kept,
    pub(super) filepath: Kept,
    pub(super) id: Kept,
    pub(super) status: Option<Status>,
    pub(super) line: Option<u32>,
    pub(super) duration: Option<Duration>,
    pub(super) timestamp: Option<OffsetDateTime>,
    pub(super) attempts: Vec<Attempt>,
    /// Whether a later child says something else of how the case ended.
    pub(super) contradicted: bool,
    pub(super) properties: Vec<(String, String)>,
}

impl Case {
    pub(super) fn clear(&mut self) {
        let Self { name, classname, class, file, filepath, id, attempts, properties, .. } = self;
        for kept in [name, classname, class, file, filepath, id] {
            kept.clear();
        }
        attempts.clear();
        properties.clear();
        self.contradicted = false;
        self.status = None;
        self.line = None;
        self.duration = None;
        self.timestamp = None;
    }

    /// Notes a child that comes after the one that decides.
    pub(super) fn hear_again(&mut self, status: Status) {
        let first = self.attempts.iter().find(|it| it.place == AttemptOrder::Itself);
        self.contradicted |= first.is_some_and(|it| it.status.is_failure() != status.is_failure());
    }

    /// Whether a child element already has the result of the case.
    pub(super) fn is_decided(&self) -> bool {
        self.attempts.iter().any(|it| it.place == AttemptOrder::Itself)
    }

    /// The attempts of the case in their order, given to `sink`. Answers how many were given.
    pub(super) fn deliver(
        &mut self,
        names: &[String],
        suites: &[Suite],
        seen: &mut Seen,
        mut sink: impl FnMut(&CaseRun<'_>) -> ControlFlow<()>,
    ) -> (u64, ControlFlow<()>) {
        if !self.is_decided() {
            let status = self.status.unwrap_or(Status::Passed);
            self.attempts.push(Attempt::new(AttemptOrder::Itself, status));
        }
        let failed = |it: &Attempt| it.place == AttemptOrder::Itself && it.status.is_failure();
        let order: fn(AttemptOrder) -> u8 = if self.attempts.iter().any(failed) {
            |place| match place {
                AttemptOrder::Before => 0,
                AttemptOrder::Itself => 1,
                AttemptOrder::After => 2,
            }
        } else {
            |place| match place {
                AttemptOrder::Before | AttemptOrder::After => 0,
                AttemptOrder::Itself => 1,
            }
        };
        self.attempts.sort_by_key(|it| order(it.place));

        let outermost = suites.first();
        let file = self.file.some().or(self.filepath.some());
        let file = file.or_else(|| outermost?.file.some()).or_else(|| outermost?.filepath.some());
        let timestamp =
            self.timestamp.or_else(|| suites.iter().rev().find_map(|suite| suite.timestamp));
        let mut run = CaseRun {
            suites: names,
            name: self.name.as_str(),
            classname: self.classname.some(),
            class: self.class.some(),
            file,
            asked_file: outermost.and_then(|suite| suite.file.some()).or(file),
            line: self.line,
            id: self.id.some(),
            status: Status::Passed,
            duration: None,
            timestamp,
            detail: None,
            attempt: 0,
            element: 0,
            concludes: false,
            contradicted: self.contradicted,
            properties: &self.properties,
        };
        let told = seen.so_far(&run);
        told.elements = told.elements.saturating_add(1);
        run.element = told.elements;
        let mut given = 0;
        let last = self.attempts.len() - 1;
        for (at, attempt) in self.attempts.iter().enumerate() {
            told.attempts = told.attempts.saturating_add(1);
            given += 1;
            run.status = attempt.status;
            run.duration = attempt.duration;
            if attempt.place == AttemptOrder::Itself {
                run.duration = self.duration;
            }
            run.timestamp = attempt.timestamp.or(timestamp);
            run.detail = attempt.detail();
            run.attempt = told.attempts;
            run.concludes = at == last;
            if sink(&run).is_break() {
                return (given, ControlFlow::Break(()));
            }
        }
        (given, ControlFlow::Continue(()))
    }
}

/// What the file has reported so far about one case.
#[derive(Clone, Copy, Debug, Default)]
struct PartialCase {
    elements: u32,
    attempts: u32,
}

/// What was reported about each case, by a hash of its identity.
#[derive(Debug, Default)]
pub(super) struct Seen {
    hasher: RandomState,
    /// The identity in one text: one hash of it is faster than one of each part.
    identity: String,
    cases: HashMap<u64, PartialCase>,
}

impl Seen {
    fn so_far(&mut self, run: &CaseRun<'_>) -> &mut PartialCase {
        self.identity.clear();
        let [file, classname, id] =
            [run.file, run.classname, run.id].map(Option::unwrap_or_default);
        for part in [run.parent(), file, classname, run.name, id] {
            self.identity.push_str(part);
            // No part holds a NUL, see `Kept`.
            self.identity.push('\0');
        }
        self.cases.entry(self.hasher.hash_one(&self.identity)).or_default()
    }
}
