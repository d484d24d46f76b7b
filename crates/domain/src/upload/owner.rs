//! Whose bytes are in the store of uploads.

use uuid::Uuid;

use crate::flaky::Trust;
use crate::ids::{OrgId, RepoId};

/// The first letter of keys that name an owner.
const MARK: &str = "o";

/// The owner of stored bytes. It is part of their key, so that a store can count what each owner
/// has without reading anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobOwner {
    /// The organization.
    pub org: OrgId,
    /// The repository.
    pub repo: RepoId,
    /// How the sender was authenticated.
    pub trust: Trust,
}

impl BlobOwner {
    /// The beginning of the keys of its bytes, up to a hyphen: letters, digits and hyphens.
    pub fn prefix(self) -> String {
        let (org, repo, trust) = (self.org.0.simple(), self.repo.0.simple(), self.trust.as_str());
        format!("{MARK}-{org}-{repo}-{trust}")
    }

    /// The owner of a key; `None` if it names none.
    pub fn of_key(key: &str) -> Option<Self> {
        let mut parts = key.split('-');
        if parts.next() != Some(MARK) {
            return None;
        }
        let mut id = || Uuid::try_parse(parts.next()?).ok();
        let (org, repo) = (OrgId(id()?), RepoId(id()?));
        let trust = parts.next()?;
        let trust = [Trust::Token, Trust::Public].into_iter().find(|it| it.as_str() == trust)?;
        Some(Self { org, repo, trust })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_its_owner() {
        for trust in [Trust::Token, Trust::Public] {
            let (org, repo) = (OrgId(Uuid::from_u128(1)), RepoId(Uuid::from_u128(u128::MAX)));
            let owner = BlobOwner { org, repo, trust };
            let key = format!("{}-{}-0-0123456789abcdef", owner.prefix(), Uuid::from_u128(7));
            assert_eq!(BlobOwner::of_key(&key), Some(owner));
        }
        for key in ["", "o", "o-x-y-token-1", "a-0", "doctor-1", ".part-abc"] {
            assert_eq!(BlobOwner::of_key(key), None, "{key}");
        }
    }
}
