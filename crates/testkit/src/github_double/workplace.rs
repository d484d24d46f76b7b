//! A double with a clone beside it.

use std::ops::Deref;

use signalbox_domain::ids::{PrNumber, Sha};
use signalbox_domain::queue::Change;

use super::{GitHubDouble, check_requests};
use signalbox_conformance::git_place::GitPlace;

/// A double of a host with the repository `acme/calc`, and a clone in which commits are made. When
/// it is dropped, every request that was made is held against the host's description.
pub struct Workplace {
    place: GitPlace,
    /// The host.
    pub double: GitHubDouble,
}

impl Deref for Workplace {
    type Target = GitPlace;

    fn deref(&self) -> &GitPlace {
        &self.place
    }
}

impl Workplace {
    /// An empty repository, for the holder of that token.
    pub fn new(token: &str) -> Self {
        let place = GitPlace::new("bare.git");
        let double = GitHubDouble::start(&place.bare_folder(), "acme", "calc", token);
        Self { place, double }
    }

    /// Pushes a branch, by force.
    pub fn push(&self, branch: &str) -> Sha {
        let sha = self.place.push(branch);
        self.double.pushed(branch);
        sha
    }

    /// A branch on `from` with one commit; pushed.
    pub fn branch(&self, name: &str, from: &str, files: &[(&str, &str)]) -> Sha {
        self.place.branch(name, from, files);
        self.push(name)
    }

    /// A pull request from a new branch.
    pub fn open(&self, name: &str, files: &[(&str, &str)]) -> Change {
        let head = self.branch(name, "main", files);
        let number = self.double.open(name, "main", &format!("change {name}"));
        let number = u32::try_from(number).expect("small");
        Change {
            pr: PrNumber(number),
            head,
            title: format!("change {number}"),
            body: String::new(),
            author: "ada".into(),
        }
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            check_requests(&self.double.log());
        }
    }
}
