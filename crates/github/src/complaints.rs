//! The missing permissions, logged for operators once.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use signalbox_domain::ids::RepoName;
use signalbox_domain::ports::HostError;

/// The current denials: the repository, and the operation.
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
                        "the git host denies an operation; run signalbox doctor"
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
                    tracing::info!(%repo, doing, "the git host allows the operation again");
                }
            }
        }
    }
}
