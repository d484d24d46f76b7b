//! Answers that are asked for again with their `ETag`: one that has not changed costs no quota.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// The most answers that are kept, and the most bytes of all together and of each.
const MAX_ANSWERS: usize = 4_096;
const MAX_BYTES: usize = 32 * 1024 * 1024;
const MAX_ANSWER: usize = 1024 * 1024;

/// An answer that may be asked for again.
#[derive(Clone)]
pub(super) struct Cached {
    pub(super) etag: String,
    pub(super) body: std::sync::Arc<[u8]>,
    pub(super) next: Option<String>,
}

/// Answers by address; the oldest go first when there are too many.
#[derive(Default)]
pub(super) struct EtagCache(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    answers: BTreeMap<String, Cached>,
    order: VecDeque<String>,
    bytes: usize,
}

impl EtagCache {
    pub(super) fn get(&self, address: &str) -> Option<Cached> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).answers.get(address).cloned()
    }

    pub(super) fn put(&self, address: &str, answer: Cached) {
        if answer.body.len() > MAX_ANSWER {
            return;
        }
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.bytes += answer.body.len();
        match inner.answers.insert(address.to_owned(), answer) {
            Some(old) => inner.bytes -= old.body.len(),
            None => inner.order.push_back(address.to_owned()),
        }
        while inner.bytes > MAX_BYTES || inner.answers.len() > MAX_ANSWERS {
            let Some(oldest) = inner.order.pop_front() else { return };
            if let Some(old) = inner.answers.remove(&oldest) {
                inner.bytes -= old.body.len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(bytes: usize) -> Cached {
        Cached { etag: "\"x\"".into(), body: vec![0; bytes].into(), next: None }
    }

    #[test]
    fn the_cache_stays_within_its_bounds() {
        let cache = EtagCache::default();
        for number in 0..MAX_ANSWERS + 10 {
            cache.put(&number.to_string(), answer(10));
        }
        assert!(cache.get("0").is_none(), "the oldest went first");
        assert!(cache.get(&(MAX_ANSWERS + 9).to_string()).is_some());
        for number in 0..100 {
            cache.put(&format!("large {number}"), answer(MAX_ANSWER));
        }
        let inner = cache.0.lock().expect("no panic before");
        assert!(inner.bytes <= MAX_BYTES, "{}", inner.bytes);
        assert_eq!(inner.bytes, inner.answers.values().map(|it| it.body.len()).sum::<usize>());
        drop(inner);
        cache.put("too large", answer(MAX_ANSWER + 1));
        assert!(cache.get("too large").is_none());
    }
}
