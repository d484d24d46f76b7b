//! The elements that are read, and their attributes.

use std::borrow::Cow;
use std::io::Read;
use std::ops::ControlFlow;

use quick_xml::events::BytesStart;

use super::case::{Attempt, AttemptOrder, Suite};
use super::error::JunitError;
use super::limits::{self, FIELD_BYTES, Limit};
use super::lines::count;
use super::reader::{Element, Reading};
use super::text::Kept;
use super::{CaseRun, Status, values};

impl<R: Read, S: FnMut(&CaseRun<'_>) -> ControlFlow<()>> Reading<R, S> {
    pub(super) fn open_suites(&mut self, tag: &BytesStart<'_>) -> Result<(), JunitError> {
        let mut pytest = false;
        self.each_attribute(tag, |key, value| pytest |= key == "name" && value == "pytest tests")?;
        self.summary.pytest |= pytest;
        Ok(())
    }

    pub(super) fn open_suite(&mut self, tag: &BytesStart<'_>) -> Result<(), JunitError> {
        let mut suite = Suite::default();
        let mut name = Kept::default();
        let mut tests: Option<u64> = None;
        self.each_attribute(tag, |key, value| match key {
            "tests" => tests = value.trim().parse().ok(),
            "name" => name.set_escaped(value, FIELD_BYTES),
            "file" => suite.file.set_escaped(value, FIELD_BYTES),
            "filepath" => suite.filepath.set_escaped(value, FIELD_BYTES),
            "timestamp" => suite.timestamp = values::timestamp(value),
            _ => {}
        })?;
        if self.suites.is_empty() {
            self.declared = self.declared.and_then(|sum| sum.checked_add(tests?));
            self.summary.pytest |= name.as_str() == "pytest";
        }
        self.summary.suites += 1;
        self.names.push(name.as_str().to_owned());
        self.suites.push(suite);
        Ok(())
    }

    pub(super) fn open_case(&mut self, tag: &BytesStart<'_>) -> Result<(), JunitError> {
        if self.summary.cases >= self.limits.cases {
            return Err(self.over(Limit::Cases, self.limits.cases));
        }
        self.summary.cases += 1;
        let mut case = std::mem::take(&mut self.case);
        case.clear();
        let read = self.each_attribute(tag, |key, value| match key {
            "name" => case.name.set_escaped(value, FIELD_BYTES),
            "classname" => case.classname.set_escaped(value, FIELD_BYTES),
            "class" => case.class.set_escaped(value, FIELD_BYTES),
            "file" => case.file.set_escaped(value, FIELD_BYTES),
            "filepath" => case.filepath.set_escaped(value, FIELD_BYTES),
            "id" => case.id.set_escaped(value, FIELD_BYTES),
            "line" => case.line = value.trim().parse().ok(),
            "time" => case.duration = values::duration(value),
            "timestamp" => case.timestamp = values::timestamp(value),
            "status" | "result" => case.status = case.status.or_else(|| status(value)),
            _ => {}
        });
        self.case = case;
        read
    }

    pub(super) fn open_attempt(
        &mut self,
        name: &str,
        tag: &BytesStart<'_>,
    ) -> Result<Element, JunitError> {
        let (place, status) = match name {
            "failure" => (AttemptOrder::Itself, Status::Failed),
            "error" => (AttemptOrder::Itself, Status::Errored),
            "skipped" => (AttemptOrder::Itself, Status::Skipped),
            "flakyFailure" => (AttemptOrder::Before, Status::Failed),
            "flakyError" => (AttemptOrder::Before, Status::Errored),
            "rerunFailure" => (AttemptOrder::After, Status::Failed),
            "rerunError" => (AttemptOrder::After, Status::Errored),
            _ => return Ok(Element::Ignored),
        };
        if place == AttemptOrder::Itself && self.case.is_decided() {
            self.case.hear_again(status);
            return Ok(Element::Ignored);
        }
        // The attempt that the case itself is counts, also when it comes last.
        let own = usize::from(place != AttemptOrder::Itself && !self.case.is_decided());
        if count(self.case.attempts.len() + own) >= self.limits.repeats {
            return Err(self.over(Limit::Repeats, self.limits.repeats));
        }
        let most = self.limits.detail_bytes;
        let mut attempt = Attempt::new(place, status);
        self.each_attribute(tag, |key, value| match key {
            "message" => attempt.message.set_escaped(value, most),
            "type" => attempt.kind.set_escaped(value, most),
            "time" => attempt.duration = values::duration(value),
            "timestamp" => attempt.timestamp = values::timestamp(value),
            _ => {}
        })?;
        self.case.attempts.push(attempt);
        Ok(Element::Attempt)
    }

    pub(super) fn open_property(&mut self, tag: &BytesStart<'_>) -> Result<Element, JunitError> {
        if self.case.properties.len() >= limits::PROPERTIES {
            return Ok(Element::Ignored);
        }
        let mut name = Kept::default();
        let mut value = std::mem::take(&mut self.value);
        value.clear();
        self.each_attribute(tag, |key, text| match key {
            "name" => name.set_escaped(text, FIELD_BYTES),
            "value" => value.set_escaped(text, FIELD_BYTES),
            _ => {}
        })?;
        self.value = value;
        self.case.properties.push((name.as_str().to_owned(), String::new()));
        Ok(Element::Property)
    }

    /// Calls `take` with each attribute's local name and its value as written, with references.
    fn each_attribute(
        &self,
        tag: &BytesStart<'_>,
        mut take: impl FnMut(&str, &str),
    ) -> Result<(), JunitError> {
        let mut attributes = tag.attributes();
        // The check compares each with each. The last of two of one name counts.
        for (number, attribute) in (1..).zip(attributes.with_checks(false)) {
            let attribute = attribute.map_err(|error| self.malformed(error.to_string()))?;
            let value: Cow<'_, str> = attribute.value;
            if number > self.limits.attributes {
                return Err(self.over(Limit::Attributes, self.limits.attributes));
            }
            if count(value.len()) > self.limits.attribute_bytes {
                return Err(self.over(Limit::AttributeBytes, self.limits.attribute_bytes));
            }
            take(attribute.key.as_ref(), &value);
        }
        Ok(())
    }
}

/// The meaning of a `status` or `result` attribute of a case that did not pass.
fn status(text: &str) -> Option<Status> {
    const WORDS: [(&str, Status); 13] = [
        ("fail", Status::Failed),
        ("failed", Status::Failed),
        ("failure", Status::Failed),
        ("error", Status::Errored),
        ("errored", Status::Errored),
        ("skip", Status::Skipped),
        ("skipped", Status::Skipped),
        ("disabled", Status::Skipped),
        ("ignored", Status::Skipped),
        ("notrun", Status::Skipped),
        ("pending", Status::Skipped),
        ("suppressed", Status::Skipped),
        ("excluded", Status::Skipped),
    ];
    let text = text.trim();
    WORDS.iter().find(|(word, _)| text.eq_ignore_ascii_case(word)).map(|(_, status)| *status)
}
