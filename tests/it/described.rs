//! Every JSON reply that the tests receive fits the description of the API.

use std::sync::LazyLock;

use signalbox_testkit::description::{Answer, Description};

/// Checks that a reply is one that the description of the API knows.
pub(crate) fn fits(
    method: &str,
    path: &str,
    status: u16,
    headers: &reqwest::header::HeaderMap,
    text: &str,
) {
    static DESCRIPTION: LazyLock<Description> =
        LazyLock::new(|| Description::new(&signalbox::openapi_document()));
    let content_type = headers.get("content-type").and_then(|it| it.to_str().ok());
    let answer = Answer {
        method,
        path,
        status,
        content_type: content_type.unwrap_or_default(),
        body: text.as_bytes(),
    };
    DESCRIPTION.check_answer(answer).unwrap_or_else(|wrong| panic!("{wrong}"));
}
