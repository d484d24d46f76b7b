//! What the host lets us do at all.

use super::state::Reply;

/// How much of the repository the credentials that are accepted reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// All of it.
    #[default]
    Full,
    /// It can be read; an app is told so when it writes.
    ReadOnly,
    /// It can be read; whoever writes is told that there is nothing.
    ReadOnlyHidden,
    /// It is archived.
    Archived,
    /// It is not there, as far as we are told.
    Hidden,
    /// The organization lets other addresses in only.
    OtherAddresses,
    /// The organization wants the token to be authorized.
    SingleSignOn,
}

impl Access {
    /// The refusal of a request, if it is refused, with its headers.
    pub(super) fn refuse(
        self,
        method: &str,
        path: &str,
    ) -> Option<(Reply, Vec<(&'static str, String)>)> {
        let (is_write, in_repository) = (method != "GET", path.starts_with("/repos/"));
        if !in_repository {
            return None;
        }
        let plain = |reply| Some((reply, Vec::new()));
        match self {
            Self::ReadOnly if is_write => {
                plain(Reply::error(403, "Resource not accessible by integration"))
            }
            Self::Archived if is_write => {
                plain(Reply::error(403, "Repository was archived so is read-only."))
            }
            Self::ReadOnlyHidden if is_write => plain(Reply::not_found()),
            Self::Full | Self::ReadOnly | Self::Archived | Self::ReadOnlyHidden => None,
            Self::Hidden => plain(Reply::not_found()),
            Self::OtherAddresses => plain(Reply::error(
                403,
                "Although you appear to have the correct authorization credentials, the `acme` \
                 organization has an IP allow list enabled, and your IP address is not permitted \
                 to access this resource.",
            )),
            Self::SingleSignOn => {
                let words = "Resource protected by organization SAML enforcement. You must grant \
                             your Personal Access token access to this organization.";
                let url = "required; url=https://github.example/orgs/acme/sso";
                Some((Reply::error(403, words), vec![("x-github-sso", url.to_owned())]))
            }
        }
    }
}
