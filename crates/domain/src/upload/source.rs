//! What CI has proven about a job that sends results.

use super::Claims;
use crate::flaky::BranchClass;
use crate::ids::PrNumber;

/// What a CI job tests, as its CI system has proven it. Results that the job sends are judged as
/// results of this, whatever the upload states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProvenSource {
    /// A commit of a branch of the repository.
    Branch {
        /// The branch's name.
        name: String,
        /// The commit.
        sha: String,
    },
    /// A pull request, or code that the CI system does not vouch for.
    PullRequest {
        /// The pull request, if the CI system names it.
        number: Option<PrNumber>,
    },
}

impl ProvenSource {
    /// Replaces what a sender states about the branch and the commit by what is proven.
    pub fn bind(&self, claims: &mut Claims) {
        claims.proven = true;
        match self {
            Self::Branch { name, sha } => {
                claims.branch = Some(name.clone());
                claims.sha = Some(sha.clone());
                (claims.pr, claims.class) = (None, None);
            }
            Self::PullRequest { number } => {
                // No branch: a monitor of a branch must not count it by the name that it states.
                let number_of = |number: &PrNumber| format!("pull/{number}");
                claims.branch = Some(number.as_ref().map_or_else(|| "pull/".into(), number_of));
                claims.pr = *number;
                claims.class = Some(BranchClass::PullRequest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(branch: &str, sha: &str, pr: Option<u32>, class: Option<BranchClass>) -> Claims {
        let (branch, sha) = (Some(branch.to_owned()), Some(sha.to_owned()));
        Claims { branch, sha, class, pr: pr.map(PrNumber), ..Claims::default() }
    }

    #[test]
    fn what_is_proven_replaces_what_is_stated() {
        let stated = || claims("main", "a", Some(9), Some(BranchClass::Stable));
        let mut bound = stated();
        ProvenSource::Branch { name: "topic".into(), sha: "b".into() }.bind(&mut bound);
        let expected = Claims { proven: true, ..claims("topic", "b", None, None) };
        assert_eq!(bound, expected);
        for (number, branch) in [(Some(7), "pull/7"), (None, "pull/")] {
            let mut bound = stated();
            ProvenSource::PullRequest { number: number.map(PrNumber) }.bind(&mut bound);
            let class = Some(BranchClass::PullRequest);
            let expected = Claims { proven: true, ..claims(branch, "a", number, class) };
            assert_eq!(bound, expected);
        }
    }
}
