//! A cache of replies that are revalidated with their `ETag`: an unchanged one costs no quota.

use std::sync::Arc;

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, Options, OptionsBuilder, Weighter};

/// The most bytes of all answers together, with their addresses and [`OVERHEAD`].
const MAX_BYTES: u64 = 32 * 1024 * 1024;
/// The most bytes of an answer.
const MAX_ANSWER: usize = 1024 * 1024;
/// What an answer takes besides its texts, in bytes.
const OVERHEAD: usize = 256;
/// About how many bytes an answer has: how many are expected follows from it.
const USUAL_ANSWER: u64 = 8 * 1024;

/// A reply that can be revalidated.
#[derive(Clone)]
pub(super) struct Cached {
    pub(super) etag: String,
    pub(super) body: Arc<[u8]>,
    pub(super) next: Option<String>,
}

/// The bytes that an answer takes.
#[derive(Clone)]
pub(super) struct Bytes;

impl Weighter<String, Cached> for Bytes {
    fn weight(&self, address: &String, answer: &Cached) -> u64 {
        let next = answer.next.as_ref().map_or(0, String::len);
        let texts = address.len() + answer.etag.len() + answer.body.len() + next;
        u64::try_from(OVERHEAD + texts).unwrap_or(u64::MAX)
    }
}

/// Replies by address. When they exceed the limit, replies that were never reused are evicted
/// first.
pub(super) struct EtagCache(Cache<String, Cached, Bytes>);

impl Default for EtagCache {
    fn default() -> Self {
        let builder = DefaultHashBuilder::default();
        Self(Cache::with_options(options(), Bytes, builder, DefaultLifecycle::default()))
    }
}

/// One shard, because each has its part of the bytes and a large answer must fit into it.
fn options() -> Options {
    let expected = usize::try_from(MAX_BYTES / USUAL_ANSWER).unwrap_or(usize::MAX);
    let mut options = OptionsBuilder::new();
    options.shards(1).estimated_items_capacity(expected).weight_capacity(MAX_BYTES);
    options.build().expect("both capacities are given")
}

impl EtagCache {
    pub(super) fn get(&self, address: &str) -> Option<Cached> {
        self.0.get(address)
    }

    pub(super) fn put(&self, address: &str, answer: Cached) {
        if answer.body.len() <= MAX_ANSWER {
            self.0.insert(address.to_owned(), answer);
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
        for number in 0..200_000 {
            cache.put(&number.to_string(), answer(10));
        }
        assert!(cache.0.weight() <= MAX_BYTES, "{}", cache.0.weight());
        assert!(cache.get("199999").is_some());
        for number in 0..100 {
            cache.put(&format!("large {number}"), answer(MAX_ANSWER));
        }
        assert!(cache.0.weight() <= MAX_BYTES, "{}", cache.0.weight());
        cache.put("too large", answer(MAX_ANSWER + 1));
        assert!(cache.get("too large").is_none());
    }

    #[test]
    fn a_revalidated_reply_is_kept() {
        let cache = EtagCache::default();
        cache.put("0 reused", answer(10));
        for number in 0..100 {
            cache.put(&format!("1 used once {number}"), answer(MAX_ANSWER / 2));
            assert!(cache.get("0 reused").is_some(), "after {number}");
        }
        let kept = |number: &u32| cache.get(&format!("1 used once {number}")).is_some();
        assert!((0..100).filter(kept).count() < 64, "64 of them fill the cache");
    }
}
