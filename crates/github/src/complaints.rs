//! What the host does not let us do, told to operators once.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use signalbox_domain::ids::RepoName;
use signalbox_domain::ports::HostError;

/// What is denied now: in which repository, and what we were doing.
#[derive(Default)]
pub(crate) struct Complaints(Mutex<BTreeSet<(RepoName, &'static str)>>);

impl Complaints {
    pub(crate) fn note(&self, repo: &RepoName, doing: &'static str, error: Option<&HostError>) {
        let key = (repo.clone(), doing);
        let mut denied = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match error {
            Some(
                error @ (HostError::AccessDenied { .. } | HostError::CredentialRejected { .. }),
            ) => {
                if denied.insert(key) {
                    tracing::warn!(
                        %repo, doing, %error,
                        "the git host does not let this server work: run signalbox doctor"
                    );
                }
            }
            // Nothing is known about our rights.
            Some(HostError::RateLimited { .. } | HostError::Unavailable { .. }) => {}
            Some(
                HostError::Rejected { .. }
                | HostError::NotFound { .. }
                | HostError::Conflict { .. },
            )
            | None => {
                if denied.remove(&key) {
                    tracing::info!(%repo, doing, "the git host lets this server work again");
                }
            }
        }
    }
}
