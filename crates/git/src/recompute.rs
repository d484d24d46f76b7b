//! Composes the candidates of other hosts again, in mirrors, by the code that checks the landings
//! of plain git hosts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use signalbox_domain::ids::Sha;
use signalbox_domain::ports::HostError;
use signalbox_domain::time::{Span, Timestamp};
use signalbox_hosts::{Recomputation, Recomputed, Recomputer};

use crate::git::Git;
use crate::mirror::{Limits, Mirror};
use crate::proof::{Composed, differing};
use crate::remote::{Access, Failure, failure, fetch};

/// The hours for which a repository is not fetched again that is too large for a mirror, or that a
/// new mirror cannot hold.
const REFUSED_HOURS: u32 = 24;

/// Composes candidates again in mirrors of their repositories.
#[derive(Debug, Default)]
pub struct Mirrors {
    limits: Limits,
    /// The mirrors of repositories that are too large or cannot be used, each with the time until
    /// when, and why.
    refused: Mutex<BTreeMap<PathBuf, (Timestamp, String)>>,
}

#[async_trait]
impl Recomputer for Mirrors {
    async fn recompute(&self, order: Recomputation<'_>) -> Result<Recomputed, HostError> {
        let mirror = Mirror::lock(&order.mirror).await?;
        if let Some(words) = self.refused(&order) {
            return Err(HostError::Rejected { words });
        }
        let mut attempt = self.attempt(&mirror, &order).await;
        if let Err(Failure::Mirror(error)) = &attempt {
            tracing::warn!(mirror = %order.mirror.display(), %error,
                "could not use a mirror, which is made again");
            mirror.remove().await?;
            attempt = self.attempt(&mirror, &order).await;
        }
        match attempt {
            Ok(recomputed) => Ok(recomputed),
            Err(Failure::Host(error)) => Err(error),
            // A new mirror has the same fault, so it is not one of the mirror.
            Err(Failure::Mirror(error)) => {
                let words = error.to_string();
                self.refuse(&order, &words);
                Err(HostError::Rejected { words })
            }
            Err(Failure::TooLarge(words)) => {
                self.refuse(&order, &words);
                mirror.remove().await?;
                Err(HostError::Rejected { words })
            }
        }
    }
}

impl Mirrors {
    /// Mirrors with these limits for each.
    pub fn new(limits: Limits) -> Self {
        Self { limits, refused: Mutex::default() }
    }

    /// Why a repository is not fetched.
    fn refused(&self, order: &Recomputation<'_>) -> Option<String> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, why) = refused.get(&order.mirror)?;
        (order.now < *until).then(|| why.clone())
    }

    fn refuse(&self, order: &Recomputation<'_>, why: &str) {
        let until = order.now.plus(Span::hours(REFUSED_HOURS));
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.insert(order.mirror.clone(), (until, why.to_owned()));
    }

    async fn attempt(
        &self,
        mirror: &Mirror,
        order: &Recomputation<'_>,
    ) -> Result<Recomputed, Failure> {
        let (base, candidate) = (order.base.as_str(), order.candidate.as_str());
        let is_sha256 = base.len() == 64;
        let prepared = mirror.prepare(is_sha256, &self.limits, order.now).await;
        prepared.map_err(Failure::Mirror)?;
        let access = Arc::new(Access::new(&order.remote, &order.mirror));
        let git = Git::at(order.mirror.clone()).reaching(&access);
        let heads = order.heads.iter().map(|head| head.as_str());
        let commits: Vec<&str> = [base, candidate].into_iter().chain(heads).collect();
        fetch(&git, &commits, &self.limits, order.now).await?;
        let recomputed = compose(&git, order).await;
        let recomputed = recomputed.map_err(|error| failure(error, order.now))?;
        mirror.remember(&git, &[base, candidate]).await.map_err(Failure::Mirror)?;
        Ok(recomputed)
    }
}

async fn compose(git: &Git, order: &Recomputation<'_>) -> Result<Recomputed, HostError> {
    // The commits in between have the same ids each time.
    let at = Timestamp::from_unix_seconds(0);
    let mut composed = Composed::of(git, order.base, order.method, at).await?;
    for (place, head) in order.heads.iter().enumerate() {
        let head: &Sha = head;
        if let Err(paths) = composed.add(head).await? {
            return Ok(Recomputed::Conflict { head: place, paths });
        }
    }
    let (expected, found) = (composed.tree()?, git.tree(order.candidate.as_str()).await?);
    let paths =
        if expected == found { Vec::new() } else { differing(git, &expected, &found).await? };
    Ok(Recomputed::Tree { found, expected, paths })
}
