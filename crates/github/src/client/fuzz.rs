//! Headers and errors of GitHub, on mutations of real ones.

use reqwest::header::{HeaderMap, HeaderValue, LINK, RETRY_AFTER};
use signalbox_domain::time::Timestamp;
use signalbox_testkit::fuzz::{committed, fuzz};

use super::address::{next_page, part, path};
use super::answer::{Quota, error, limited, words};

/// The text of an error is one short line, whatever its body is.
#[test]
fn errors() {
    let parts = [
        "null",
        "\"message\":",
        "\"errors\":[",
        "\\n",
        "\"\\u001b\"",
        "{",
        "[",
        "rate limit exceeded",
    ];
    fuzz("github-words", &committed("github-words"), &parts, |input| {
        let said = words(input);
        assert!(said.chars().count() <= 500 && !said.contains(char::is_control), "{said:?}");
        let mut headers = HeaderMap::new();
        if let Ok(value) = HeaderValue::from_bytes(input) {
            headers.insert(RETRY_AFTER, value);
        }
        let now = Timestamp::from_unix_seconds(1_767_225_600);
        for status in [401, 403, 404, 409, 422, 429, 500] {
            assert!(limited(status, &headers, &said, now).is_none_or(|until| until >= now));
            let error = error("GET /x", status % 2 == 0, status, &headers, &said);
            assert!(error.to_string().len() <= 4 * said.len() + 200, "{error}");
        }
    });
}

/// A time to come back is later than now; the next page is an address of the header.
#[test]
fn headers() {
    let words = ["<", ">", "; rel=\"next\"", ",", "-1", "9223372036854775807", "0", "e9"];
    let corpus = [committed("github-link"), vec![b"1767225700".to_vec()]].concat();
    fuzz("github-link", &corpus, &words, |input| {
        let text = String::from_utf8_lossy(input.get(..2_048).unwrap_or(input));
        if let Some(address) = next_page(&text) {
            assert!(text.contains(&format!("<{address}>")) && !address.contains([',', '>']));
        }
        for (encoded, slashes) in [(part(&text), 0), (path(&text), text.matches('/').count())] {
            assert!(
                encoded.bytes().all(|it| it.is_ascii_alphanumeric() || b"-._~%/".contains(&it))
            );
            assert_eq!(encoded.matches('/').count(), slashes);
        }
        let Ok(value) = HeaderValue::from_bytes(text.trim().as_bytes()) else { return };
        let now = Timestamp::from_unix_seconds(1_767_225_600);
        let mut headers = HeaderMap::new();
        headers.insert(LINK, value.clone());
        headers.insert("x-ratelimit-reset", value.clone());
        headers.insert("x-ratelimit-remaining", HeaderValue::from_static("0"));
        assert!(Quota::read(&headers).used_up(now).is_none_or(|until| until > now));
        headers.insert(RETRY_AFTER, value);
        assert!(limited(403, &headers, "", now).is_none_or(|until| until >= now));
    });
}
