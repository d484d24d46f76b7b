//! When pull requests are read again whose mergeability the host is still computing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use signalbox_domain::ids::{PrNumber, Sha};
use signalbox_domain::ports::QueueRef;
use signalbox_domain::time::{Span, Timestamp};

/// The pause before such a pull request is read again, in seconds: the first one, which is doubled
/// while the target does not move, and the longest.
const PAUSE_SECONDS: (u32, u32) = (4, 60);

/// A pull request that was read before the host had an answer.
struct Pause {
    /// The head of the target then: the host starts again when it moves.
    target: Option<Sha>,
    reads: u32,
    read_at: Timestamp,
}

impl Pause {
    fn is_over(&self, target: Option<&Sha>, now: Timestamp) -> bool {
        let (first, longest) = PAUSE_SECONDS;
        let doubled = if self.target.as_ref() == target { self.reads.min(10) } else { 0 };
        let seconds = first.saturating_mul(1 << doubled).min(longest);
        now >= self.read_at.plus(Span::seconds(seconds))
    }
}

/// The pauses of all queues.
#[derive(Default)]
pub(super) struct Undecided(Mutex<BTreeMap<QueueRef, BTreeMap<PrNumber, Pause>>>);

impl Undecided {
    fn pauses(&self) -> MutexGuard<'_, BTreeMap<QueueRef, BTreeMap<PrNumber, Pause>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The undecided pull requests of a queue to read now, in the same order. Others are forgotten.
    pub(super) fn due(
        &self,
        queue: QueueRef,
        target: Option<&Sha>,
        undecided: Vec<PrNumber>,
        now: Timestamp,
    ) -> Vec<PrNumber> {
        let mut pauses = self.pauses();
        let Some(known) = pauses.get_mut(&queue) else { return undecided };
        let present: BTreeSet<PrNumber> = undecided.iter().copied().collect();
        known.retain(|pr, _| present.contains(pr));
        let is_due = |pr: &PrNumber| known.get(pr).is_none_or(|pause| pause.is_over(target, now));
        undecided.into_iter().filter(is_due).collect()
    }

    /// Starts the next pause of a pull request.
    pub(super) fn was_read(
        &self,
        queue: QueueRef,
        target: Option<&Sha>,
        pr: PrNumber,
        now: Timestamp,
    ) {
        let mut pauses = self.pauses();
        let known = pauses.entry(queue).or_default();
        let before = known.get(&pr).filter(|pause| pause.target.as_ref() == target);
        let reads = before.map_or(0, |pause| pause.reads.saturating_add(1));
        known.insert(pr, Pause { target: target.cloned(), reads, read_at: now });
    }

    /// Forgets all other queues.
    pub(super) fn keep_only(&self, queues: &BTreeSet<QueueRef>) {
        self.pauses().retain(|queue, _| queues.contains(queue));
    }
}

#[cfg(test)]
mod tests {
    use signalbox_domain::ids::{OrgId, QueueId};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn pauses_grow_until_the_host_has_decided_or_the_target_moves() {
        let (undecided, pr) = (Undecided::default(), PrNumber(7));
        let queue = QueueRef { org: OrgId(Uuid::nil()), id: QueueId(Uuid::nil()) };
        let heads = ["0", "1"].map(|digit| Sha::new(digit.repeat(40)).expect("a name"));
        let mut now = Timestamp::from_unix_seconds(0);
        let mut read_at = Vec::new();
        for second in 0..250 {
            let target = Some(&heads[usize::from(second >= 110)]);
            if undecided.due(queue, target, vec![pr], now) == [pr] {
                undecided.was_read(queue, target, pr, now);
                read_at.push(second);
            }
            now = now.plus(Span::seconds(1));
        }
        assert_eq!(read_at, [0, 4, 12, 28, 60, 110, 114, 122, 138, 170, 230]);
        let due = |prs: &[PrNumber], now| undecided.due(queue, None, prs.to_vec(), now);
        assert_eq!(due(&[PrNumber(8), pr], now), [PrNumber(8), pr], "no target any more");
        assert!(due(&[], now).is_empty(), "decided");
        undecided.was_read(queue, None, pr, now);
        assert!(due(&[pr], now).is_empty());
        undecided.keep_only(&BTreeSet::new());
        assert_eq!(due(&[pr], now), [pr]);
    }
}
