//! Requests to the server. Every reply that comes is checked against the description of the API.

use std::sync::LazyLock;

use reqwest::header::HeaderMap;
use reqwest::{Body, Method, RequestBuilder};
use serde_json::{Value, json};
use signalbox_testkit::description::{Answer, Description};

use super::System;

/// A stream, piece by piece.
pub(crate) type Pieces =
    std::pin::Pin<Box<dyn futures_util::Stream<Item = reqwest::Result<Vec<u8>>>>>;

/// A reply as it came.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) text: String,
    headers: HeaderMap,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> String {
        let value = self.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// The code of a problem.
    pub(crate) fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }
}

impl System {
    /// Sends a request just so.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> Reply {
        self.send_bytes(method, path, headers, body.into()).await
    }

    /// Sends a request with any body.
    pub(crate) async fn send_bytes(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Body,
    ) -> Reply {
        let mut request = self.request(method, path).body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (status, headers, text) = self.reply(request).await;
        Reply { status, headers, text: text.unwrap_or_default() }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.url()))
    }

    /// Sends a request; returns the status, the headers and the body, if it is whole. The reply must be
    /// one that the description of the API knows.
    async fn reply(&self, request: RequestBuilder) -> (u16, HeaderMap, reqwest::Result<String>) {
        static DESCRIPTION: LazyLock<Description> =
            LazyLock::new(|| Description::new(&signalbox::openapi_document()));
        let request = request.build().expect("a request");
        let (method, path) = (request.method().to_string(), request.url().path().to_owned());
        let reply = self.http.execute(request).await.expect("a reply");
        let (status, headers) = (reply.status().as_u16(), reply.headers().clone());
        let text = reply.text().await;
        if let Ok(text) = &text {
            let content_type = headers.get("content-type").and_then(|it| it.to_str().ok());
            let answer = Answer {
                method: &method,
                path: &path,
                status,
                content_type: content_type.unwrap_or_default(),
                body: text.as_bytes(),
            };
            DESCRIPTION.check_answer(answer).unwrap_or_else(|wrong| panic!("{wrong}"));
        }
        (status, headers, text)
    }

    /// Calls an operation; its status and reply.
    pub(crate) async fn try_call(&self, operation: &str, mut body: Value) -> (u16, Value) {
        body["repo"] = json!({ "host": "git.local", "owner": "acme", "name": "calc" });
        if body["targetBranch"].is_null() {
            body["targetBranch"] = json!("main");
        }
        let request = self.request(Method::POST, &format!("/v1/{operation}"));
        let (status, _, text) =
            self.reply(request.header("x-api-token", &self.token).json(&body)).await;
        let text = text.expect("a body");
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// Calls an operation that must succeed.
    pub(crate) async fn call(&self, operation: &str, body: Value) -> Value {
        let (status, reply) = self.try_call(operation, body).await;
        assert_eq!(status, 200, "{operation}: {reply}");
        reply
    }

    /// Creates the queue of another branch.
    pub(crate) async fn create_queue(&self, branch: &str, mut body: Value) {
        body["targetBranch"] = json!(branch);
        self.call("createQueue", body).await;
    }

    /// Reads an address of the server.
    pub(crate) async fn get(&self, path: &str) -> String {
        let request = self.request(Method::GET, path).header("x-api-token", &self.token);
        self.reply(request).await.2.expect("a body")
    }

    /// Opens a stream.
    pub(crate) async fn follow(&self, path: &str) -> Pieces {
        self.follow_from(path, "").await
    }

    /// Opens a stream again after the event with that id.
    pub(crate) async fn follow_from(&self, path: &str, last: &str) -> Pieces {
        let request = self.request(Method::GET, path).header("x-api-token", &self.token);
        let reply = request.header("last-event-id", last).send().await;
        let reply = reply.expect("a reply").error_for_status().expect("a stream");
        let pieces = reply.bytes_stream();
        Box::pin(futures_util::StreamExt::map(pieces, |piece| piece.map(|it| it.to_vec())))
    }
}
