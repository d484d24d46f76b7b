//! Addresses of the host's API: parts are encoded where they are put together.

use std::fmt::Write as _;

use url::Url;

/// A part of a path: everything but letters, digits and `-._~` is encoded.
pub(crate) fn part(text: &str) -> String {
    encoded(text, false)
}

/// A name with slashes that stay: a ref, or a file.
pub(crate) fn path(text: &str) -> String {
    encoded(text, true)
}

fn encoded(text: &str, keep_slashes: bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        let plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if plain || (keep_slashes && byte == b'/') {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _written = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// The address of the next page in a `Link` header.
pub(super) fn next_page(link: &str) -> Option<&str> {
    link.split(',').find_map(|one| {
        let (address, parameters) = one.trim().strip_prefix('<')?.split_once('>')?;
        let is_next = |it: &str| matches!(it.trim(), "rel=\"next\"" | "rel=next");
        parameters.split(';').any(is_next).then_some(address)
    })
}

/// Where git reaches the repositories of a host with this API, without a slash at its end.
pub(super) fn git_url(api: &Url) -> String {
    let mut url = api.clone();
    url.set_query(None);
    if let Some(host) = api.host_str().and_then(|host| host.strip_prefix("api."))
        && url.set_host(Some(host)).is_err()
    {
        return api.as_str().trim_end_matches('/').to_owned();
    }
    let address = url.as_str().trim_end_matches('/');
    address.strip_suffix("/api/v3").unwrap_or(address).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cannot_break_out_of_their_place() {
        assert_eq!(part("feature/a b?#%"), "feature%2Fa%20b%3F%23%25");
        assert_eq!(path("feature/a?b"), "feature/a%3Fb");
        assert_eq!(part("ü"), "%C3%BC");
    }

    #[test]
    fn git_reaches_the_host_of_the_api() {
        for (api, git) in [
            ("https://api.github.com", "https://github.com"),
            ("https://api.acme.ghe.com/", "https://acme.ghe.com"),
            ("https://git.acme.example/api/v3", "https://git.acme.example"),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080"),
        ] {
            assert_eq!(git_url(&Url::parse(api).expect("a URL")), git);
        }
    }

    #[test]
    fn the_next_page_is_found_among_links() {
        let link = "<https://h/a?page=1>; rel=\"prev\", <https://h/a?page=3>; rel=\"next\"";
        assert_eq!(next_page(link), Some("https://h/a?page=3"));
        assert_eq!(next_page("<https://h/a>; rel=\"last\""), None);
        assert_eq!(next_page("nonsense"), None);
    }
}
