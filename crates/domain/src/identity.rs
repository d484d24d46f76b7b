//! Identities from an identity provider, and the roles that they map to.

use thiserror::Error;

use crate::ids::{HostId, OrgSlug};
use crate::token::Scope;
use crate::words::words;

words! {
    /// The role of a signed-in user.
    Role {
        /// May read.
        Viewer = "viewer",
        /// May also submit, restart and cancel pull requests, and change quarantine.
        Submitter = "submitter",
        /// May do everything.
        Admin = "admin",
    }
}

words! {
    /// The kind of a CI system: it decides which claims of its tokens name the job.
    CiKind {
        /// GitHub Actions.
        Actions = "github-actions",
        /// GitLab CI.
        Pipelines = "gitlab-ci",
    }
}

/// A CI system whose jobs are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CiSystem {
    /// Its kind.
    pub kind: CiKind,
    /// Its issuer, exactly as in its tokens.
    pub issuer: String,
    /// The audience that its tokens must have.
    pub audience: String,
    /// The organization that accepts its jobs.
    pub org: OrgSlug,
    /// The git host of the repositories that its tokens name.
    pub host: HostId,
    /// The accepted repositories: `owner`, or `owner/name`.
    pub repositories: Vec<String>,
}

impl CiSystem {
    /// Whether jobs of the repository at this path on the git host are accepted.
    pub fn accepts(&self, path: &str) -> bool {
        let path = path.to_ascii_lowercase();
        self.repositories.iter().any(|accepted| {
            let rest = path.strip_prefix(&accepted.to_ascii_lowercase());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

impl Role {
    /// The scopes of the role.
    pub fn scopes(self) -> Vec<Scope> {
        let reads = vec![Scope::QueueRead, Scope::TestsRead];
        match self {
            Self::Viewer => reads,
            Self::Submitter => [reads, vec![Scope::QueueSubmit, Scope::TestsAdmin]].concat(),
            Self::Admin => Scope::ALL.to_vec(),
        }
    }
}

/// A user's identity, as asserted by the identity provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The provider's id of the user; never empty.
    pub subject: String,
    /// The display name; the subject if the provider gives none.
    pub name: String,
    /// The email address, if the provider has verified it.
    pub email: Option<String>,
    /// The values of the claim that roles are derived from.
    pub groups: Vec<String>,
}

/// Who may sign in, and with which role. An empty list of domains or groups admits every user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdmissionPolicy {
    /// The domains of verified addresses that may sign in.
    pub domains: Vec<String>,
    /// The groups of which a user must be in at least one.
    pub groups: Vec<String>,
    /// Groups whose members are admins.
    pub admins: Vec<String>,
    /// Groups whose members are submitters.
    pub submitters: Vec<String>,
}

/// Why a user may not sign in.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Denied {
    /// The address is of another domain, or not verified.
    #[error("only users with a verified address of {0} may sign in here")]
    Domain(String),
    /// The user is in none of the groups.
    #[error("only members of {0} may sign in here")]
    Group(String),
}

impl AdmissionPolicy {
    /// The role of a user, or why they may not sign in.
    pub fn role(&self, who: &Identity) -> Result<Role, Denied> {
        let domain = who.email.as_deref().and_then(|it| it.rsplit_once('@')).map(|(_, it)| it);
        let own = |it: &String| domain.is_some_and(|domain| domain.eq_ignore_ascii_case(it));
        if !self.domains.is_empty() && !self.domains.iter().any(own) {
            return Err(Denied::Domain(self.domains.join(", ")));
        }
        let member = |groups: &[String]| groups.iter().any(|it| who.groups.contains(it));
        if !self.groups.is_empty() && !member(&self.groups) {
            return Err(Denied::Group(self.groups.join(", ")));
        }
        Ok(if member(&self.admins) {
            Role::Admin
        } else if member(&self.submitters) {
            Role::Submitter
        } else {
            Role::Viewer
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(all: &[&str]) -> Vec<String> {
        all.iter().map(ToString::to_string).collect()
    }

    fn who(email: Option<&str>, groups: &[&str]) -> Identity {
        Identity {
            subject: "1".into(),
            name: "Ada".into(),
            email: email.map(ToOwned::to_owned),
            groups: words(groups),
        }
    }

    #[test]
    fn roles_come_from_groups() {
        let policy = AdmissionPolicy {
            admins: words(&["ops"]),
            submitters: words(&["dev"]),
            ..AdmissionPolicy::default()
        };
        let role = |groups: &[&str]| policy.role(&who(None, groups));
        assert_eq!(role(&[]), Ok(Role::Viewer));
        assert_eq!(role(&["Ops"]), Ok(Role::Viewer));
        assert_eq!(role(&["dev"]), Ok(Role::Submitter));
        assert_eq!(role(&["dev", "ops"]), Ok(Role::Admin));
        assert!(!Role::Submitter.scopes().contains(&Scope::QueueAdmin));
        assert_eq!(Role::Viewer.scopes(), [Scope::QueueRead, Scope::TestsRead]);
    }

    #[test]
    fn only_the_domain_of_a_verified_address_counts() {
        let policy =
            AdmissionPolicy { domains: words(&["example.org"]), ..AdmissionPolicy::default() };
        assert_eq!(policy.role(&who(Some("ada@Example.org"), &[])), Ok(Role::Viewer));
        for wrong in
            [None, Some("ada@example.org.evil"), Some("ada@sub.example.org"), Some("example.org")]
        {
            assert!(matches!(policy.role(&who(wrong, &[])), Err(Denied::Domain(_))), "{wrong:?}");
        }
    }

    #[test]
    fn a_user_in_no_group_is_denied() {
        let policy = AdmissionPolicy { groups: words(&["staff"]), ..AdmissionPolicy::default() };
        assert_eq!(policy.role(&who(None, &["staff"])), Ok(Role::Viewer));
        assert_eq!(policy.role(&who(None, &["guests"])), Err(Denied::Group("staff".into())));
    }
}
