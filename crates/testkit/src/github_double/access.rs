//! Access restrictions of the double.

use super::state::Reply;

/// The access of accepted credentials to the repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Full access.
    #[default]
    Full,
    /// Read access; writes are answered with 403.
    ReadOnly,
    /// Read access; writes are answered with 404.
    ReadOnlyHidden,
    /// The repository is archived.
    Archived,
    /// The repository is invisible: 404.
    Hidden,
    /// The organization's IP allow list excludes the client.
    OtherAddresses,
    /// The organization requires SAML authorization of the token.
    SingleSignOn,
}

impl Access {
    /// The answer that refuses a request, with its headers; `None` if the request is allowed.
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
