//! The file of the credentials: what an operator puts there is used without a restart.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};
use signalbox_domain::time::{Span, Timestamp};

use super::auth::Credentials;

/// How often the file is checked, in seconds.
const LOOK_SECONDS: u32 = 5;

/// The file that credentials were read from, for when it changes.
pub(super) struct Source {
    path: PathBuf,
    state: Mutex<SourceState>,
}

#[derive(Default)]
struct SourceState {
    looked_at: Option<Timestamp>,
    modified: Option<SystemTime>,
    digest: Option<[u8; 32]>,
}

impl Source {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, state: Mutex::new(SourceState::default()) }
    }

    /// The credentials in the file, if they have changed. Unless `insist`, the file is checked
    /// every few seconds, and read when it was modified.
    pub(super) fn changed(
        &self,
        known: &Credentials,
        now: Timestamp,
        insist: bool,
    ) -> Option<Credentials> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let pause = Span::seconds(LOOK_SECONDS);
        let is_fresh = state.looked_at.is_some_and(|at| now < at.plus(pause));
        if is_fresh && !insist {
            return None;
        }
        state.looked_at = Some(now);
        let modified = modified(&self.path);
        if modified == state.modified && !insist {
            return None;
        }
        let bytes = std::fs::read(&self.path).ok()?;
        let digest: [u8; 32] = Sha256::digest(&bytes).into();
        state.modified = modified;
        if state.digest == Some(digest) {
            return None;
        }
        let read = match known {
            Credentials::App { id, .. } => Credentials::app(*id, &bytes),
            Credentials::Token(_) => Credentials::token(&String::from_utf8_lossy(&bytes)),
        };
        let file = self.path.display();
        match read {
            Ok(credentials) => {
                if state.digest.replace(digest).is_some() {
                    tracing::info!(%file, "read new credentials");
                }
                Some(credentials)
            }
            // It may be half written: it is read again.
            Err(error) => {
                state.modified = None;
                tracing::warn!(%file, %error, "could not use the new credentials");
                None
            }
        }
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|data| data.modified()).ok()
}
