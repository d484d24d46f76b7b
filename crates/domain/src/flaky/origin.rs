//! What two results of one commit must have in common to be compared: the job and the base.

use std::fmt;
use std::str::FromStr;

use crate::words::words;

use super::digest::digest_of;

/// The digest of the base of a commit that was tested as it is.
const ITSELF: u32 = 0;

/// What was tested beside the commit that an upload names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base<'a> {
    /// It is not known: the commit may have been merged into another one first.
    Unknown,
    /// The commit was tested as it is.
    Itself,
    /// It was tested together with this commit, or as this merge commit.
    Merged(&'a str),
}

/// The job and the base of a run, as digests of 32 bits.
///
/// Its text has the digests in hexadecimal, separated by `.`; an unknown one is empty. The longest
/// has 26 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "String", try_from = "String"))]
pub struct Origin {
    job: Option<u32>,
    base: Option<u32>,
    /// Where the CI system does not name matrix entries: the attempt of the job, so that two uploads
    /// of one attempt do not count as a retry.
    attempt: Option<u32>,
}

words!(
    /// What a failure and a success on one commit may differ in.
    Doubt {
        /// The job is unknown, so one of them may be of another platform.
        Platform = "platform",
        /// The base is unknown, so one of them may have been merged into other code.
        Base = "base",
        /// Neither the job nor the base is known.
        PlatformOrBase = "platform_or_base",
    }
);

/// How a failure and a success on one code compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    /// They come from the same job and base.
    Same,
    /// They may.
    Doubtful(Doubt),
    /// They come from different jobs, or were merged into different code.
    Different,
}

impl Origin {
    /// The origin of a run. A job is known by what identifies it: workflow, name, matrix entry,
    /// operating system.
    pub fn new(job: Option<&[&str]>, base: Base<'_>) -> Self {
        let base = match base {
            Base::Unknown => None,
            Base::Itself => Some(ITSELF),
            Base::Merged(commit) => Some(digest(&[commit])),
        };
        Self { job: job.map(digest), base, attempt: None }
    }

    /// The same for a job whose matrix entry is unknown, in this attempt of it.
    #[must_use]
    pub fn in_attempt(self, attempt: &[&str]) -> Self {
        Self { attempt: Some(digest(attempt)), ..self }
    }

    /// Whether the job, its matrix entry and the base are known.
    pub const fn is_complete(self) -> bool {
        self.job.is_some() && self.base.is_some() && self.attempt.is_none()
    }

    /// Whether the job is known.
    pub const fn has_job(self) -> bool {
        self.job.is_some()
    }

    /// The job as a text, if it is known.
    pub fn job(self) -> Option<String> {
        self.job.map(|job| format!("{job:x}"))
    }

    /// How results of two origins compare. `has_entries`: the job is known to have several matrix
    /// entries.
    pub(super) fn compare(self, other: Self, has_entries: bool) -> Comparison {
        let differ = |one: Option<u32>, other: Option<u32>| {
            one.zip(other).is_some_and(|(one, other)| one != other)
        };
        if differ(self.job, other.job) || differ(self.base, other.base) {
            return Comparison::Different;
        }
        let one_attempt = self.attempt.is_some() && self.attempt == other.attempt;
        let job = self.job.is_some() && other.job.is_some() && !one_attempt && !has_entries;
        let base = self.base.is_some() && other.base.is_some();
        match (job, base) {
            (true, true) => Comparison::Same,
            (false, true) => Comparison::Doubtful(Doubt::Platform),
            (true, false) => Comparison::Doubtful(Doubt::Base),
            (false, false) => Comparison::Doubtful(Doubt::PlatformOrBase),
        }
    }

    /// The job, base and attempt, if the attempt is known: what several matrix entries share.
    pub(super) fn shared_attempt(self) -> Option<(Option<u32>, Option<u32>)> {
        self.attempt.map(|_| (self.job, self.base))
    }
}

fn digest(parts: &[&str]) -> u32 {
    let [first, second, third, fourth, ..] = digest_of(parts.iter().copied());
    u32::from_be_bytes([first, second, third, fourth]).max(ITSELF + 1)
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Platform => "platform",
            Self::Base => "base",
            Self::PlatformOrBase => "platform or base",
        })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |part: Option<u32>| part.map(|it| format!("{it:x}")).unwrap_or_default();
        write!(f, "{}.{}", part(self.job), part(self.base))?;
        if self.attempt.is_some() {
            write!(f, ".{}", part(self.attempt))?;
        }
        Ok(())
    }
}

/// A text that is no origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoOrigin(String);

impl fmt::Display for NoOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid origin {:?}: expected up to three hexadecimal digests", self.0)
    }
}

impl FromStr for Origin {
    type Err = NoOrigin;

    fn from_str(text: &str) -> Result<Self, NoOrigin> {
        let wrong = || NoOrigin(text.to_owned());
        let mut parts = text.split('.').map(|part| match part {
            "" => Ok(None),
            part => u32::from_str_radix(part, 16).map(Some).map_err(|_| wrong()),
        });
        let mut next = || parts.next().transpose();
        let origin =
            Self { job: next()?.flatten(), base: next()?.flatten(), attempt: next()?.flatten() };
        if next()?.is_some() { Err(wrong()) } else { Ok(origin) }
    }
}

impl From<Origin> for String {
    fn from(origin: Origin) -> Self {
        origin.to_string()
    }
}

impl TryFrom<String> for Origin {
    type Error = NoOrigin;

    fn try_from(text: String) -> Result<Self, NoOrigin> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(job: Option<&str>, base: Base<'_>) -> Origin {
        Origin::new(job.as_ref().map(std::slice::from_ref), base)
    }

    #[test]
    fn the_text_of_an_origin_is_read_again() {
        for origin in [
            Origin::default(),
            origin(Some("unit"), Base::Unknown),
            origin(None, Base::Itself),
            origin(Some("unit"), Base::Merged("abc")).in_attempt(&["12", "1"]),
        ] {
            assert_eq!(origin.to_string().parse(), Ok(origin));
            assert_eq!(Origin::try_from(String::from(origin)), Ok(origin));
            assert!(origin.to_string().len() <= 26);
        }
        assert!(Origin::try_from("x.0".to_owned()).is_err());
        assert!("x.0".parse::<Origin>().is_err() && "1.2.3.4".parse::<Origin>().is_err());
    }

    #[test]
    fn results_of_different_jobs_and_bases_are_not_compared() {
        let main = origin(Some("unit"), Base::Itself);
        let compare = |other| main.compare(other, false);
        assert_eq!(compare(main), Comparison::Same);
        assert_eq!(compare(origin(Some("windows"), Base::Itself)), Comparison::Different);
        assert_eq!(compare(origin(Some("unit"), Base::Merged("abc"))), Comparison::Different);
        assert_eq!(compare(origin(None, Base::Merged("abc"))), Comparison::Different);
        let doubtful = Comparison::Doubtful;
        assert_eq!(compare(origin(None, Base::Itself)), doubtful(Doubt::Platform));
        assert_eq!(compare(origin(Some("unit"), Base::Unknown)), doubtful(Doubt::Base));
        assert_eq!(compare(Origin::default()), doubtful(Doubt::PlatformOrBase));
    }

    #[test]
    fn two_uploads_of_one_attempt_may_be_matrix_entries() {
        let of = |attempt| origin(Some("unit"), Base::Itself).in_attempt(&["12", attempt]);
        let platform = Comparison::Doubtful(Doubt::Platform);
        assert_eq!(of("1").compare(of("1"), false), platform);
        assert_eq!(of("1").compare(of("2"), false), Comparison::Same);
        assert_eq!(of("1").compare(of("2"), true), platform);
    }
}
