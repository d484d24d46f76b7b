//! Bodies that are too large to be held: read piece by piece.

use std::io::{self, Read};

use actix_web::HttpRequest;
use actix_web::http::header::CONTENT_LENGTH;
use actix_web::web::Payload;
use futures_util::StreamExt;
use serde::de::{DeserializeOwned, Error as _};
use signalbox_services::Intake;
use tokio::task::spawn_blocking;

use crate::holding::{Spool, not_kept};
use crate::json_guard::Guarded;
use crate::pace::cut_off;
use crate::problem::{Code, Problem};

pub(crate) fn too_large(most: u64) -> Problem {
    Problem::new(Code::TooLarge, format!("the body may have at most {most} bytes"))
}

/// Refuses a body whose declared length is too large.
pub(crate) fn check_length(request: &HttpRequest, most: u64) -> Result<(), Problem> {
    let length = request.headers().get(CONTENT_LENGTH).and_then(|it| it.to_str().ok());
    let length = length.and_then(|it| it.parse::<u64>().ok());
    if length.is_some_and(|length| length > most) { Err(too_large(most)) } else { Ok(()) }
}

/// Writes a whole body into an upload's file.
pub(crate) async fn into_upload(mut body: Payload, upload: &mut Intake) -> Result<(), Problem> {
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|error| cut_off(&error))?;
        upload.write(&chunk).await?;
    }
    Ok(())
}

/// Reads a body completely and discards it.
pub(crate) async fn drain(mut body: Payload, most: u64) -> Result<(), Problem> {
    let mut left = most;
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|error| cut_off(&error))?;
        let length = u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        left = left.checked_sub(length).ok_or_else(|| too_large(most))?;
    }
    Ok(())
}

/// The most bytes of a body that is parsed from memory, which is several times as fast as from a
/// reader. It is as much as a spool holds in memory before it writes to its file.
const IN_MEMORY: u64 = 1024 * 1024;

fn parse<T: DeserializeOwned>(mut reader: impl Read, length: u64) -> serde_json::Result<T> {
    if length > IN_MEMORY {
        return serde_json::from_reader(io::BufReader::new(reader));
    }
    let mut body = Vec::new();
    reader.read_to_end(&mut body).map_err(serde_json::Error::custom)?;
    serde_json::from_slice(&body)
}

/// Parses JSON after all of it has come. Unknown fields of a body above 1 MiB take no memory, and
/// neither does what is nested too deep or one text that is too long.
pub(crate) async fn json<T: DeserializeOwned + Send + 'static>(
    mut body: Payload,
    most: u64,
    mut spool: Spool,
) -> Result<T, Problem> {
    let mut left = most;
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|error| cut_off(&error))?;
        let length = u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        left = left.checked_sub(length).ok_or_else(|| too_large(most))?;
        spool.add(&chunk).await?;
    }
    let (reader, held) = spool.into_reader().map_err(|error| not_kept(&error))?;
    let reading = spawn_blocking(move || {
        let parsed = parse(Guarded::new(reader), most - left);
        drop(held);
        parsed
    });
    let read = reading.await.map_err(|error| {
        tracing::error!(%error, "the task that reads a body panicked or was cancelled");
        Problem::internal()
    })?;
    read.map_err(|error| {
        Problem::new(Code::MalformedBody, format!("the body cannot be used: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use signalbox_testkit::fuzz::{committed, fuzz};

    use super::*;
    use crate::dto::Question;

    fn depth(json: &Value) -> usize {
        match json {
            Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
            Value::Object(items) => 1 + items.values().map(depth).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// A body is read the same from memory and from a file, and what is accepted is not deep.
    #[test]
    fn fuzz_bodies() {
        let words = [
            "[",
            "{\"\":",
            "\"testIdentifiers\":[",
            "\\u0000",
            "\"\\ud800\"",
            "1e999",
            "-0",
            "\\\"",
        ];
        fuzz("json-stream", &committed("http-body"), &words, |input| {
            let read = |length| parse::<Value>(Guarded::new(input), length);
            match (read(0), read(u64::MAX)) {
                (Ok(held), Ok(streamed)) => assert!(held == streamed && depth(&held) <= 64),
                (held, streamed) => assert!(held.is_err() && streamed.is_err()),
            }
            let question = |length| parse::<Question>(Guarded::new(input), length).ok();
            let (held, streamed) = (question(0), question(u64::MAX));
            assert_eq!(format!("{held:?}"), format!("{streamed:?}"));
        });
    }
}
