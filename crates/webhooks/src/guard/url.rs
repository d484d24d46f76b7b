//! Rules for URLs.

use url::{Host, Url};

use super::{Guard, Refused};

/// The host as it was written, without a port.
fn written_host(text: &str) -> Option<&str> {
    let rest = text.split_once("://")?.1;
    let authority = rest.split(['/', '?', '#']).next()?;
    if authority.starts_with('[') {
        return authority.split_inclusive(']').next();
    }
    authority.split(':').next()
}

/// Whether a host name consists of letters, digits, hyphens and underscores between its dots.
fn is_plain(name: &str) -> bool {
    let labels = name.strip_suffix('.').unwrap_or(name).split('.');
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    labels.into_iter().all(|label| !label.is_empty() && label.bytes().all(plain))
}

pub(super) fn check(guard: &Guard, text: &str, http: bool) -> Result<Url, Refused> {
    let refuse = |rule| Err(Refused::Url(rule));
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"\\<>\"^`{|}".contains(&byte);
    if !text.bytes().all(plain) {
        return refuse("must be a valid URL with an ASCII host name");
    }
    let Ok(url) = Url::parse(text) else { return refuse("must be a URL with a host") };
    let is_web = text.starts_with("https://") || (http && text.starts_with("http://"));
    if !is_web {
        let both = "must start with https:// or http://";
        return refuse(if http { both } else { "must start with https://" });
    }
    if !url.username().is_empty()
        || url.password().is_some()
        || text.contains('@') && {
            let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
            rest.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@'))
        }
    {
        return refuse("must not name a user");
    }
    if url.fragment().is_some() {
        return refuse("must not have a fragment");
    }
    if url.port() == Some(0) {
        return refuse("must not have port 0");
    }
    let written = written_host(text).unwrap_or_default();
    match url.host() {
        Some(Host::Ipv4(address)) => {
            if written != address.to_string() {
                return refuse("must have an IP address in the usual form, such as 192.0.2.1");
            }
            guard.check_address(address.into())?;
        }
        Some(Host::Ipv6(address)) => guard.check_address(address.into())?,
        Some(Host::Domain(name)) => {
            if !is_plain(name) || !written.eq_ignore_ascii_case(name) {
                return refuse("must have a plain host name");
            }
        }
        None => return refuse("must be a URL with a host"),
    }
    Ok(url)
}
