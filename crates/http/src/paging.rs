//! Page tokens: opaque, signed, good for the list that they were made for and for no other.

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit, Mac};
use serde::Serialize;
use sha2::Sha256;
use signalbox_domain::flaky::TestId;
use signalbox_domain::ids::OrgId;
use signalbox_domain::ports::Seek;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::problem::{Code, Problem};

const PLACE: usize = 1 + 16 + 4 + 8;
const MAC: usize = 32;

/// The identity of a list: a token of another list is refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListId<'a> {
    /// Whose.
    pub(crate) org: OrgId,
    /// The operation.
    pub(crate) operation: &'a str,
    /// The repository and everything that filters, as text.
    pub(crate) filter: &'a str,
    /// Tests on a page.
    pub(crate) page_size: u32,
}

/// Which page is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The first one.
    First,
    /// The one after a test.
    After(TestId),
    /// The one before a test.
    Before(TestId),
    /// The last one.
    Last,
}

/// A requested page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) turn: Turn,
    /// Its number, from 0, as far as it is known.
    pub(crate) index: u32,
    /// How many tests the list had; known on every page but the first and the last.
    pub(crate) total: Option<u64>,
}

/// Signs page tokens.
#[derive(Clone)]
pub struct PageTokens {
    key: [u8; 32],
}

impl std::fmt::Debug for PageTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PageTokens(hidden)")
    }
}

impl PageTokens {
    /// Signs with that key, which is never revealed.
    pub const fn new(key: [u8; 32]) -> Self {
        Self { key }
    }

    /// Reads a token; none, or an empty one, means the first page.
    pub(crate) fn read(&self, list: ListId<'_>, token: Option<&str>) -> Result<Asked, Problem> {
        let Some(token) = token.filter(|token| !token.is_empty()) else {
            return Ok(Asked { turn: Turn::First, index: 0, total: None });
        };
        self.open(list, token).ok_or_else(|| {
            let words = "page_token was not issued by this server for this list; start again \
                         without one";
            Problem::new(Code::InvalidPageToken, words)
        })
    }

    fn open(&self, list: ListId<'_>, token: &str) -> Option<Asked> {
        let bytes =
            HEXLOWER.decode(token.as_bytes()).ok().filter(|bytes| bytes.len() == PLACE + MAC)?;
        let (place, mac) = bytes.split_at_checked(PLACE)?;
        self.mac(list, place)?.verify_slice(mac).ok()?;
        let (kind, rest) = place.split_first()?;
        let (id, rest) = rest.split_at_checked(16)?;
        let (index, total) = rest.split_at_checked(4)?;
        let id = TestId(Uuid::from_slice(id).ok()?);
        let turn = match kind {
            b'>' => Turn::After(id),
            b'<' => Turn::Before(id),
            b'$' => Turn::Last,
            _ => return None,
        };
        let index = u32::from_be_bytes(index.try_into().ok()?);
        let total = u64::from_be_bytes(total.try_into().ok()?);
        Some(Asked { turn, index, total: (turn != Turn::Last).then_some(total) })
    }

    fn token(&self, list: ListId<'_>, turn: Turn, index: u32, total: u64) -> String {
        let (kind, id) = match turn {
            Turn::After(id) => (b'>', id.0),
            Turn::Before(id) => (b'<', id.0),
            Turn::First | Turn::Last => (b'$', Uuid::nil()),
        };
        let mut bytes = vec![kind];
        bytes.extend(id.as_bytes());
        bytes.extend(index.to_be_bytes());
        bytes.extend(total.to_be_bytes());
        let mac = self.mac(list, &bytes).map(|mac| mac.finalize().into_bytes());
        bytes.extend(mac.unwrap_or_default());
        HEXLOWER.encode(&bytes)
    }

    fn mac(&self, list: ListId<'_>, place: &[u8]) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).ok()?;
        mac.update(list.org.0.as_bytes());
        for text in [list.operation, list.filter] {
            mac.update(&u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
            mac.update(text.as_bytes());
        }
        mac.update(&list.page_size.to_be_bytes());
        mac.update(place);
        Some(mac)
    }

    /// The page fields of a reply.
    pub(crate) fn reply(&self, list: ListId<'_>, page: &Page) -> PageReply {
        let pages = page.total.div_ceil(u64::from(list.page_size.max(1)));
        let pages = u32::try_from(pages).unwrap_or(u32::MAX);
        let (start, end) = (page.ids.first().copied(), page.ids.last().copied());
        let token = |turn: Option<Turn>, index| {
            turn.map_or_else(String::new, |turn| self.token(list, turn, index, page.total))
        };
        let next = end.filter(|_| page.more_after).map(Turn::After);
        let prev = start.filter(|_| page.more_before).map(Turn::Before);
        PageReply {
            total_rows: page.total,
            total_pages: pages,
            page_index: page.index,
            next_page_token: token(next, page.index.saturating_add(1)),
            prev_page_token: token(prev, page.index.saturating_sub(1)),
            last_page_token: token((pages > 0).then_some(Turn::Last), pages.saturating_sub(1)),
        }
    }
}

/// A page of a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    /// Its tests, in order.
    pub(crate) ids: Vec<TestId>,
    /// Its number, from 0.
    pub(crate) index: u32,
    /// How many tests the list has.
    pub(crate) total: u64,
    /// Whether there are tests before it.
    pub(crate) more_before: bool,
    /// Whether there are tests after it.
    pub(crate) more_after: bool,
}

/// What must be read for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) seek: Seek,
    /// One more than is shown, so that it is known whether there are more.
    pub(crate) limit: u32,
    pub(crate) counted: bool,
}

impl Asked {
    /// What must be read. The last page is read whole; how much of it is shown follows from the
    /// count.
    pub(crate) const fn reading(self, page_size: u32) -> Reading {
        let seek = match self.turn {
            Turn::First => Seek::After(None),
            Turn::After(id) => Seek::After(Some(id)),
            Turn::Before(id) => Seek::Before(Some(id)),
            Turn::Last => Seek::Before(None),
        };
        Reading { seek, limit: page_size.saturating_add(1), counted: self.total.is_none() }
    }

    /// Cuts the rows to the page.
    pub(crate) fn cut<T>(
        self,
        mut read: Vec<T>,
        id: impl Fn(&T) -> TestId,
        counted: Option<u64>,
        page_size: u32,
    ) -> (Vec<T>, Page) {
        let total = counted.or(self.total).unwrap_or(0);
        let size = usize::try_from(page_size).unwrap_or(usize::MAX);
        let mut page = Page { index: self.index, total, ..Page::default() };
        match self.turn {
            Turn::First | Turn::After(_) => {
                page.more_after = read.len() > size;
                page.more_before = self.turn != Turn::First;
                read.truncate(size);
            }
            Turn::Before(_) | Turn::Last => {
                let rest = total.checked_rem(u64::from(page_size)).unwrap_or(0);
                let rest = usize::try_from(rest).unwrap_or(size);
                let shown = if self.turn == Turn::Last && rest > 0 { rest } else { size };
                let cut = read.len().saturating_sub(shown);
                page.more_before = cut > 0;
                page.more_after = self.turn != Turn::Last;
                read.drain(..cut);
                if self.turn == Turn::Last {
                    let pages = total.div_ceil(u64::from(page_size.max(1)));
                    page.index = u32::try_from(pages.saturating_sub(1)).unwrap_or(u32::MAX);
                }
                if !page.more_before {
                    page.index = 0;
                }
            }
        }
        page.ids = read.iter().map(id).collect();
        (read, page)
    }
}

/// The page fields of a reply.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PageReply {
    /// Tests in the list.
    total_rows: u64,
    /// Pages of the list.
    total_pages: u32,
    /// This page, from 0.
    page_index: u32,
    /// The next page; empty on the last one.
    next_page_token: String,
    /// The page before; empty on the first one.
    prev_page_token: String,
    /// The last page; empty when there is none.
    last_page_token: String,
}

#[cfg(test)]
mod tests {
    use signalbox_testkit::fuzz::fuzz;

    use super::*;

    /// Only tokens of this server and this list are read, and what they mean is printed as the same token.
    #[test]
    fn fuzz_tokens() {
        let tokens = PageTokens::new([1; 32]);
        let own = [(Turn::After(ids(4, 5)[0]), 3, 9), (Turn::Last, u32::MAX, u64::MAX)]
            .map(|(turn, index, total)| tokens.token(LIST, turn, index, total));
        let other = PageTokens::new([2; 32]).token(LIST, Turn::Before(ids(1, 2)[0]), 0, 0);
        let corpus: Vec<Vec<u8>> =
            own.iter().chain([&other]).map(|it| it.clone().into_bytes()).collect();
        fuzz("page-token", &corpus, &["00", "3e", "3c", "A", "é", &other], |input| {
            let Ok(text) = std::str::from_utf8(input) else { return };
            let Ok(asked) = tokens.read(LIST, Some(text)) else { return };
            assert!(text.is_empty() || own.iter().any(|it| it == text), "{text}");
            assert_eq!(asked.total.is_some(), !matches!(asked.turn, Turn::First | Turn::Last));
            let reading = asked.reading(LIST.page_size);
            assert_eq!(reading.limit, LIST.page_size + 1);
            let (shown, page) = asked.cut(ids(0, 3), |id| *id, Some(3), LIST.page_size);
            assert!(shown.len() <= 2 && page.ids == shown);
        });
    }

    const LIST: ListId<'_> =
        ListId { org: OrgId(Uuid::nil()), operation: "list", filter: "all", page_size: 2 };

    fn ids(from: u128, until: u128) -> Vec<TestId> {
        (from..until).map(|id| TestId(Uuid::from_u128(id))).collect()
    }

    #[test]
    fn a_token_is_valid_for_its_list_only() {
        let tokens = PageTokens::new([1; 32]);
        let after = Turn::After(ids(4, 5)[0]);
        let token = tokens.token(LIST, after, 3, 9);
        let read = tokens.read(LIST, Some(&token)).expect("its own");
        assert_eq!(read, Asked { turn: after, index: 3, total: Some(9) });
        let others = [
            ListId { org: OrgId(Uuid::from_u128(1)), ..LIST },
            ListId { operation: "lis", filter: "tall", ..LIST },
            ListId { filter: "some", ..LIST },
            ListId { page_size: 3, ..LIST },
        ];
        for other in others {
            assert!(tokens.read(other, Some(&token)).is_err(), "{other:?}");
        }
        assert!(PageTokens::new([2; 32]).read(LIST, Some(&token)).is_err());
        let mut changed = token.clone();
        changed.replace_range(0..1, if token.starts_with('3') { "4" } else { "3" });
        for bad in [changed.as_str(), "x", "00", "é", &token[2..]] {
            assert!(tokens.read(LIST, Some(bad)).is_err(), "{bad}");
        }
        let first = Asked { turn: Turn::First, index: 0, total: None };
        assert_eq!(tokens.read(LIST, None).expect("the first"), first);
        assert_eq!(tokens.read(LIST, Some("")).expect("the first"), first);
    }

    #[test]
    fn the_last_page_is_as_long_as_by_walking_there() {
        let last = Asked { turn: Turn::Last, index: 2, total: None };
        let (shown, page) = last.cut(ids(2, 5), |id| *id, Some(5), 2);
        assert_eq!((shown, page.index, page.more_before), (ids(4, 5), 2, true));
        let (shown, page) = last.cut(ids(1, 4), |id| *id, Some(4), 2);
        assert_eq!((shown, page.index, page.more_after), (ids(2, 4), 1, false));
        let (shown, page) = last.cut(ids(0, 0), |id| *id, Some(0), 2);
        assert_eq!((shown, page.index, page.more_before), (Vec::new(), 0, false));
    }
}
