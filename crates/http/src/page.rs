//! Simple pages: plain HTML without scripts. All texts are escaped.

use std::fmt::Write;

use actix_web::HttpResponse;
use actix_web::http::header::{CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY};

use crate::problem::PageKind;

/// No content is loaded or run, and no framing.
pub(crate) const POLICY: &str =
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A text with nothing in it that HTML gives a meaning to.
pub(crate) fn escaped(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut escaped, c| {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if c.is_control() && !matches!(c, '\n' | '\t') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
        escaped
    })
}

/// A page under construction. Tags are fixed; texts are untrusted and escaped.
#[derive(Debug, Default)]
pub(crate) struct Html(String);

impl Html {
    /// An element with a text in it.
    pub(crate) fn element(&mut self, tag: &'static str, text: &str) -> &mut Self {
        // Writing to a string does not fail.
        writeln!(self.0, "<{tag}>{}</{tag}>", escaped(text)).ok();
        self
    }

    /// A link, if the address is one that a browser may follow; else its text.
    pub(crate) fn link(&mut self, address: &str, text: &str) -> &mut Self {
        if address.starts_with("https://") || address.starts_with("http://") {
            let address = escaped(address);
            writeln!(
                self.0,
                "<p><a href=\"{address}\" rel=\"noreferrer\">{}</a></p>",
                escaped(text)
            )
            .ok();
        } else {
            self.element("p", text);
        }
        self
    }

    /// A list of names and values; empty values are omitted.
    pub(crate) fn facts(&mut self, facts: &[(&str, String)]) -> &mut Self {
        self.0.push_str("<dl>\n");
        for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
            writeln!(self.0, "<dt>{}</dt><dd>{}</dd>", escaped(name), escaped(value)).ok();
        }
        self.0.push_str("</dl>\n");
        self
    }

    /// A table.
    pub(crate) fn table(&mut self, head: &[&str], rows: &[Vec<String>]) -> &mut Self {
        let cells = |tag: &str, cells: &mut dyn Iterator<Item = &str>| {
            let cells = cells.map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell)));
            format!("<tr>{}</tr>\n", cells.collect::<String>())
        };
        self.0.push_str("<table>\n");
        self.0.push_str(&cells("th", &mut head.iter().copied()));
        for row in rows {
            self.0.push_str(&cells("td", &mut row.iter().map(String::as_str)));
        }
        self.0.push_str("</table>\n");
        self
    }

    /// The page as a reply.
    pub(crate) fn reply(&self, kind: PageKind, title: &str) -> HttpResponse {
        let title = escaped(title);
        let body = &self.0;
        kind.reply()
            .content_type("text/html; charset=utf-8")
            .insert_header((CONTENT_SECURITY_POLICY, POLICY))
            .insert_header((REFERRER_POLICY, "no-referrer"))
            .insert_header((
                HeaderName::from_static("x-frame-options"),
                HeaderValue::from_static("DENY"),
            ))
            .body(format!(
                "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
                 <meta name=\"viewport\" content=\"width=device-width\">\n\
                 <meta name=\"color-scheme\" content=\"light dark\">\n\
                 <title>{title}</title>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
            ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_a_tag_or_an_attribute() {
        let evil = "<script>alert('1')</script> & \"x\" \u{0}\u{1b}";
        let shown = escaped(evil);
        let safe =
            "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; &amp; &quot;x&quot; \u{fffd}\u{fffd}";
        assert_eq!(shown, safe);
        let mut page = Html::default();
        page.element("p", evil)
            .facts(&[(evil, evil.to_owned()), ("omitted", String::new())])
            .table(&[evil], &[vec![evil.to_owned()]])
            .link(&format!("https://x/{evil}"), evil)
            .link("javascript:alert(1)", evil);
        assert!(!page.0.contains("<script") && !page.0.contains("javascript:"), "{}", page.0);
        assert!(!page.0.contains("omitted"));
    }
}
