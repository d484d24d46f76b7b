//! Database URLs are shown without their passwords.

/// Whether a URL contains a password.
pub fn has_password(url: &str) -> bool {
    without_password(url) != url
}

/// A URL without its password: neither that of the user nor one among the parameters.
pub fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    if scheme == "sqlite" {
        return url.to_owned();
    }
    // The last `@`: a password that should have been encoded may contain others. Hiding too much
    // of a malformed URL is better than showing a part of a password.
    let rest = match rest.rsplit_once('@') {
        Some((user, place)) => match user.split_once(':') {
            Some((user, _)) => format!("{user}:…@{place}"),
            None => rest.to_owned(),
        },
        None => rest.to_owned(),
    };
    let rest = match rest.split_once('?') {
        Some((place, parameters)) => {
            let shown: Vec<String> = parameters.split('&').map(parameter).collect();
            format!("{place}?{}", shown.join("&"))
        }
        None => rest,
    };
    format!("{scheme}://{rest}")
}

fn parameter(text: &str) -> String {
    match text.split_once('=') {
        Some((name, _)) if name.to_lowercase().contains("password") => format!("{name}=…"),
        Some(_) | None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_password_is_shown() {
        for (url, shown) in [
            ("postgres://u:secret@h/d", "postgres://u:…@h/d"),
            ("postgres://u:se@cr:et@h/d", "postgres://u:…@h/d"),
            ("postgres://u:se?cr/et@h/d", "postgres://u:…@h/d"),
            ("postgres://u@h/d?password=secret&a=b", "postgres://u@h/d?password=…&a=b"),
            ("postgres://h/d?sslPassword=secret", "postgres://h/d?sslPassword=…"),
        ] {
            assert_eq!(without_password(url), shown);
            assert!(has_password(url));
        }
        for plain in ["postgres://u@h:5432/d?sslmode=require", "sqlite:///a:b@c.db", "nothing"] {
            assert_eq!(without_password(plain), plain);
            assert!(!has_password(plain));
        }
    }
}
