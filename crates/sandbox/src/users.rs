//! User ids for checks, on a server that runs as root: one for each check that runs, so that they
//! share neither files nor the limit of processes.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The ids that checks of this server have now.
static TAKEN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// A user and group id that no other running check has. Dropping it gives it back.
#[derive(Debug)]
pub(crate) struct UserId(u32);

impl UserId {
    /// The lowest free id, from `first` on.
    pub(crate) fn take(first: u32) -> Self {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ids = first..=u32::MAX - 1;
        let id = ids.find(|id| !taken.contains(id)).unwrap_or(first);
        taken.insert(id);
        Self(id)
    }

    pub(crate) const fn get(&self) -> u32 {
        self.0
    }
}

impl Drop for UserId {
    fn drop(&mut self) {
        TAKEN.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_at_the_same_time_have_different_ids() {
        let (first, second) = (UserId::take(3_000_000), UserId::take(3_000_000));
        assert_eq!((first.get(), second.get()), (3_000_000, 3_000_001));
        drop(first);
        assert_eq!(UserId::take(3_000_000).get(), 3_000_000);
    }
}
