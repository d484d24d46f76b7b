//! The replies to `getQueue`, serialized once for each state of a queue.

use std::sync::{Arc, Weak};

use actix_web::web::Bytes;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, Options, OptionsBuilder, Weighter};
use signalbox_domain::ids::QueueId;
use signalbox_domain::queue::Queue;
use signalbox_domain::token::EnumCase;

use crate::dto::{QueueReply, Words};

/// The total size of cached replies. A queue of 10,000 pull requests takes 8 MB.
const MAX_BYTES: u64 = 32 * 1024 * 1024;
/// The typical size of a reply, from which the expected number of replies is derived.
const USUAL_REPLY: u64 = 16 * 1024;

/// The last reply about each queue, by the case of its words.
pub struct QueueReplies(Cache<(QueueId, EnumCase), Kept, Size>);

/// A reply.
#[derive(Clone)]
struct Kept {
    /// What it is about. As long as this refers to it, no other state has the same address.
    state: Weak<Queue>,
    body: Bytes,
}

#[derive(Clone)]
struct Size;

impl Weighter<(QueueId, EnumCase), Kept> for Size {
    fn weight(&self, _: &(QueueId, EnumCase), kept: &Kept) -> u64 {
        u64::try_from(size_of::<Queue>() + kept.body.len()).unwrap_or(u64::MAX)
    }
}

impl Default for QueueReplies {
    fn default() -> Self {
        let builder = DefaultHashBuilder::default();
        Self(Cache::with_options(options(), Size, builder, DefaultLifecycle::default()))
    }
}

/// One shard, because each has its part of the bytes and a large reply must fit into it.
fn options() -> Options {
    let expected = usize::try_from(MAX_BYTES / USUAL_REPLY).unwrap_or(usize::MAX);
    let mut options = OptionsBuilder::new();
    options.shards(1).estimated_items_capacity(expected).weight_capacity(MAX_BYTES);
    options.build().expect("both capacities are given")
}

impl QueueReplies {
    /// The reply about this state, as JSON.
    pub(crate) fn of(
        &self,
        queue: &Arc<Queue>,
        case: EnumCase,
    ) -> Result<Bytes, serde_json::Error> {
        let key = (queue.header.id, case);
        let is_same = |kept: &Kept| std::ptr::eq(kept.state.as_ptr(), Arc::as_ptr(queue));
        if let Some(kept) = self.0.get(&key).filter(is_same) {
            return Ok(kept.body);
        }
        let body = Bytes::from(serde_json::to_vec(&QueueReply::of(queue, Words(case)))?);
        self.0.insert(key, Kept { state: Arc::downgrade(queue), body: body.clone() });
        Ok(body)
    }
}

#[cfg(test)]
mod tests {
    use signalbox_domain::ids::{BranchName, OrgId, RepoId};
    use signalbox_domain::queue::{Mode, Settings};
    use signalbox_domain::time::Timestamp;
    use uuid::Uuid;

    use super::*;

    fn queue(number: u128, concurrency: u32) -> Arc<Queue> {
        let id = Uuid::from_u128;
        let branch = BranchName::new("main").expect("a branch");
        let settings = Settings::new(Mode::Single, concurrency).expect("settings");
        let at = Timestamp::from_unix_seconds(1);
        let queue =
            Queue::new(QueueId(id(number)), OrgId(id(1)), RepoId(id(2)), branch, settings, at);
        Arc::new(queue.expect("a queue"))
    }

    #[test]
    fn a_state_is_serialized_once_in_each_case() {
        let (replies, state) = (QueueReplies::default(), queue(1, 5));
        let [upper, lower] =
            [EnumCase::Upper, EnumCase::Lower].map(|case| replies.of(&state, case).expect("JSON"));
        assert_ne!(upper, lower);
        for (case, body) in [(EnumCase::Upper, upper), (EnumCase::Lower, lower)] {
            let again = replies.of(&state, case).expect("JSON");
            assert_eq!((again.as_ptr(), &again), (body.as_ptr(), &body));
        }
    }

    #[test]
    fn another_state_gets_a_reply_of_its_own() {
        let replies = QueueReplies::default();
        for concurrency in 1..100 {
            // The state before is gone, and its memory may be used again.
            let state = queue(1, concurrency);
            let body = replies.of(&state, EnumCase::Upper).expect("JSON");
            let words = format!("\"concurrency\":{concurrency},");
            assert!(String::from_utf8_lossy(&body).contains(&words), "{words}");
        }
    }

    #[test]
    fn the_replies_stay_within_their_bounds() {
        let replies = QueueReplies::default();
        for number in 0..20_000 {
            replies.of(&queue(number, 1), EnumCase::Upper).expect("JSON");
        }
        let kept = replies.0.weight();
        assert!(MAX_BYTES / 2 < kept && kept <= MAX_BYTES, "{kept}");
    }
}
