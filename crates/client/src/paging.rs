//! Lists of several pages as streams.

use futures_util::{Stream, TryStreamExt, stream};

use crate::ClientError;

/// The items of all pages. `read` returns the items of a page, and the next page.
pub(crate) fn pages<P, T>(
    first: P,
    read: impl AsyncFn(P) -> Result<(Vec<T>, Option<P>), ClientError> + Clone,
) -> impl Stream<Item = Result<T, ClientError>> {
    let pages = stream::try_unfold(Some(first), move |page| {
        let read = read.clone();
        async move {
            match page {
                Some(page) => read(page).await.map(Some),
                None => Ok(None),
            }
        }
    });
    pages.map_ok(|items| stream::iter(items.into_iter().map(Ok))).try_flatten()
}

/// The token of the next page; an empty one is on the last page.
pub(crate) fn next(token: String) -> Option<String> {
    Some(token).filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_pages_are_read_in_order_until_the_last_one_or_an_error() {
        let read = async |page: u32| match page {
            3 => Err(ClientError::refused(reqwest::StatusCode::NOT_FOUND, None, "gone")),
            page => Ok((vec![page * 10, page * 10 + 1], (page != 2).then_some(page + 1))),
        };
        let all: Vec<u32> = pages(0, read).try_collect().await.expect("three pages");
        assert_eq!(all, [0, 1, 10, 11, 20, 21]);
        assert!(pages(3, read).try_collect::<Vec<u32>>().await.is_err());
    }
}
