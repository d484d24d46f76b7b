//! The elements of JUnit, walked with a pull parser.

use std::io::{self, Read};
use std::ops::ControlFlow;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::case::{Case, Seen, Suite};
use super::error::{JunitError, Position, Stop};
use super::limits::{self, Limit, Limits};
use super::lines::count;
use super::source::Source;
use super::text::Kept;
use super::{CaseRun, Summary};

/// The bytes that are passed on of one text beyond the kept ones: room for leading white space.
const TEXT_SLACK: usize = 64 * 1024;
/// Bytes of a parser's words that are repeated in an error.
const RULE_BYTES: usize = 200;

/// An open element, by its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    Suites,
    Suite,
    Case,
    /// Its text belongs to the last attempt.
    Attempt,
    Properties,
    /// Its text is the last property's value.
    Property,
    Ignored,
}

pub(super) struct Reading<R, S> {
    reader: Reader<Source<R>>,
    pub(super) limits: Limits,
    sink: S,
    open: Vec<Element>,
    pub(super) names: Vec<String>,
    pub(super) suites: Vec<Suite>,
    pub(super) case: Case,
    pub(super) value: Kept,
    seen: Seen,
    had_root: bool,
    pub(super) summary: Summary,
    /// The sum of the outermost suites' `tests`; `None` when one has none.
    pub(super) declared: Option<u64>,
}

impl<R: Read, S: FnMut(&CaseRun<'_>) -> ControlFlow<()>> Reading<R, S> {
    pub(super) fn new(input: R, limits: &Limits, sink: S) -> Self {
        let text_bytes = limits.detail_bytes.saturating_add(TEXT_SLACK);
        let mut reader = Reader::from_reader(Source::new(input, text_bytes, limits.tag_bytes));
        // A text may have been cut inside a reference.
        reader.config_mut().allow_dangling_amp = true;
        Self {
            reader,
            limits: *limits,
            sink,
            open: Vec::new(),
            names: Vec::new(),
            suites: Vec::new(),
            case: Case::default(),
            value: Kept::default(),
            seen: Seen::default(),
            had_root: false,
            summary: Summary::default(),
            declared: Some(0),
        }
    }

    pub(super) fn run(mut self) -> Result<Summary, JunitError> {
        let mut buffer = Vec::new();
        loop {
            buffer.clear();
            let next = match self.reader.read_event_into(&mut buffer) {
                Ok(Event::Start(tag)) => self.start(&tag).map(|()| ControlFlow::Continue(())),
                Ok(Event::Empty(tag)) => self.start(&tag).map(|()| self.end()),
                Ok(Event::End(_)) => Ok(self.end()),
                Ok(Event::Text(text)) => self.text(&text),
                Ok(Event::CData(text)) => self.text(&text),
                Ok(Event::GeneralRef(name)) => {
                    let most = self.limits.detail_bytes;
                    if let Some(kept) = self.kept() {
                        kept.push_reference(&name, most);
                    }
                    Ok(ControlFlow::Continue(()))
                }
                Ok(Event::Comment(_) | Event::Decl(_) | Event::PI(_)) => {
                    Ok(ControlFlow::Continue(()))
                }
                Ok(Event::DocType(_)) => Err(JunitError::Declaration { at: self.markup() }),
                Ok(Event::Eof) => return self.finish(),
                Err(error) => Err(self.refusal(error)),
            };
            if next?.is_break() {
                self.summary.stopped = true;
                return self.finish();
            }
        }
    }

    fn finish(mut self) -> Result<Summary, JunitError> {
        if !self.summary.stopped {
            if let Some(open) = self.innermost() {
                return Err(JunitError::Truncated { at: self.reader.get_ref().position(), open });
            }
            if !self.had_root {
                return Err(JunitError::Empty);
            }
        }
        self.summary.encoding = self.reader.get_ref().encoding();
        self.summary.replaced = self.reader.get_ref().replaced();
        self.summary.declared = self.declared.unwrap_or_default();
        Ok(self.summary)
    }

    fn innermost(&self) -> Option<String> {
        let name = match self.open.last()? {
            Element::Suites => "<testsuites>",
            Element::Suite => "<testsuite>",
            Element::Case => "<testcase>",
            Element::Attempt => "a failure",
            Element::Properties => "<properties>",
            Element::Property => "<property>",
            Element::Ignored => "an element that is not read",
        };
        Some(name.to_owned())
    }

    fn markup(&self) -> Position {
        self.reader.get_ref().markup()
    }

    pub(super) fn over(&self, limit: Limit, most: u64) -> JunitError {
        JunitError::Limit { at: self.markup(), limit, most }
    }

    pub(super) fn malformed(&self, rule: impl Into<String>) -> JunitError {
        JunitError::Malformed { at: self.markup(), rule: rule.into() }
    }

    /// The parser's error, or the reason why the source gave it nothing more.
    fn refusal(&self, error: quick_xml::Error) -> JunitError {
        let source = self.reader.get_ref();
        match source.stop() {
            Some(Stop::Limit(limit, most)) => return self.over(limit, most),
            Some(Stop::Declaration) => return JunitError::Declaration { at: self.markup() },
            Some(Stop::UnknownMarkup) => {
                return self.malformed("`<!` that starts no comment, CDATA section or declaration");
            }
            None => {}
        }
        match error {
            quick_xml::Error::Io(error) => {
                JunitError::Io(io::Error::new(error.kind(), error.to_string()))
            }
            quick_xml::Error::Syntax(_) if source.at_end() => {
                let open = self.innermost().unwrap_or_else(|| "a tag".to_owned());
                JunitError::Truncated { at: source.position(), open }
            }
            error => {
                let mut rule = Kept::default();
                rule.push(&error.to_string(), RULE_BYTES);
                self.malformed(rule.as_str())
            }
        }
    }

    fn start(&mut self, tag: &BytesStart<'_>) -> Result<(), JunitError> {
        let name = tag.local_name();
        let name = name.as_ref();
        if tag.name().as_ref().len() > usize::try_from(limits::NAME_BYTES).unwrap_or(usize::MAX) {
            return Err(self.over(Limit::NameBytes, limits::NAME_BYTES));
        }
        if count(self.open.len()) >= self.limits.depth {
            return Err(self.over(Limit::Depth, self.limits.depth));
        }
        let parent = self.open.last().copied();
        let element = match (parent, name) {
            (None, _) if self.had_root => return Err(self.malformed("a second root element")),
            (None | Some(Element::Suites | Element::Suite), "testsuites") => {
                self.open_suites(tag)?;
                Element::Suites
            }
            (None | Some(Element::Suites | Element::Suite), "testsuite") => {
                self.open_suite(tag)?;
                Element::Suite
            }
            (None | Some(Element::Suites | Element::Suite), "testcase") => {
                self.open_case(tag)?;
                Element::Case
            }
            (None, name) => {
                let root = name.chars().take(100).collect();
                return Err(JunitError::NotJunit { at: self.markup(), root });
            }
            (Some(Element::Case), "properties") => Element::Properties,
            (Some(Element::Case), name) => self.open_attempt(name, tag)?,
            (Some(Element::Attempt), "stackTrace") => Element::Attempt,
            (Some(Element::Properties), "property") => self.open_property(tag)?,
            (Some(_), _) => Element::Ignored,
        };
        self.had_root = true;
        self.open.push(element);
        Ok(())
    }

    /// Where text goes now.
    fn kept(&mut self) -> Option<&mut Kept> {
        match self.open.last()? {
            Element::Attempt => Some(&mut self.case.attempts.last_mut()?.text),
            Element::Property => Some(&mut self.value),
            Element::Suites
            | Element::Suite
            | Element::Case
            | Element::Properties
            | Element::Ignored => None,
        }
    }

    fn text(&mut self, text: &str) -> Result<ControlFlow<()>, JunitError> {
        let most = self.limits.detail_bytes;
        if let Some(kept) = self.kept() {
            kept.push(text, most);
        } else if self.open.is_empty() && !text.trim().is_empty() {
            let at = self.reader.get_ref().position();
            let rule = "text outside the root element".to_owned();
            return Err(JunitError::Malformed { at, rule });
        }
        Ok(ControlFlow::Continue(()))
    }

    fn end(&mut self) -> ControlFlow<()> {
        match self.open.pop() {
            Some(Element::Suite) => {
                self.names.pop();
                self.suites.pop();
            }
            Some(Element::Property) => {
                if let Some((_, value)) = self.case.properties.last_mut() {
                    self.value.as_str().clone_into(value);
                }
            }
            Some(Element::Case) => {
                let Self { case, names, suites, seen, sink, .. } = self;
                let (given, answer) = case.deliver(names, suites, seen, sink);
                self.summary.attempts += given;
                return answer;
            }
            Some(Element::Suites | Element::Attempt | Element::Properties | Element::Ignored)
            | None => {}
        }
        ControlFlow::Continue(())
    }
}
