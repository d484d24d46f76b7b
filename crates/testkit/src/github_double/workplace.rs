//! A double with a clone of its repository.

use std::ops::Deref;

use signalbox_domain::ids::{PrNumber, Sha};
use signalbox_domain::queue::Change;

use super::{GitHubDouble, check_requests};
use signalbox_conformance::git_place::GitPlace;

/// A double with the repository `acme/calc`, and a clone to create commits in. When it is dropped,
/// all requests are checked against GitHub's published description.
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
    /// Creates an empty repository; the double accepts this personal token.
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

    /// Creates and pushes a branch with one commit on `from`.
    pub fn branch(&self, name: &str, from: &str, files: &[(&str, &str)]) -> Sha {
        self.place.branch(name, from, files);
        self.push(name)
    }

    /// Opens a pull request from a new branch.
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
