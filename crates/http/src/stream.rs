//! Bodies that are too large to be held: read piece by piece.

use std::io::{self, Read};

use actix_web::HttpRequest;
use actix_web::http::header::CONTENT_LENGTH;
use actix_web::web::{Bytes, Payload};
use futures_util::StreamExt;
use serde::de::DeserializeOwned;
use signalbox_services::Intake;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use crate::json_guard::Guarded;
use crate::problem::{Code, Problem};

/// Pieces that wait for a slow reader.
const WAITING: usize = 8;

pub(crate) fn too_large(most: u64) -> Problem {
    Problem::new(Code::TooLarge, format!("the body may have at most {most} bytes"))
}

fn cut_off(error: &dyn std::fmt::Display) -> Problem {
    Problem::new(Code::MalformedBody, format!("the body was cut off: {error}"))
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

/// Pieces of a body as they come, for a reader that blocks.
struct Pieces {
    coming: mpsc::Receiver<Bytes>,
    piece: Bytes,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.coming.blocking_recv() {
                Some(piece) => self.piece = piece,
                None => return Ok(0),
            }
        }
        let length = buffer.len().min(self.piece.len());
        let taken = self.piece.split_to(length);
        buffer.get_mut(..length).unwrap_or_default().copy_from_slice(&taken);
        Ok(length)
    }
}

/// Parses JSON while it arrives. Unknown fields take no memory, and neither does what
/// is nested too deep or one text that is too long.
pub(crate) async fn json<T: DeserializeOwned + Send + 'static>(
    mut body: Payload,
    most: u64,
) -> Result<T, Problem> {
    let (sender, coming) = mpsc::channel(WAITING);
    let reading = spawn_blocking(move || {
        let pieces = Guarded::new(Pieces { coming, piece: Bytes::new() });
        serde_json::from_reader(io::BufReader::new(pieces))
    });
    let mut left = most;
    let mut stopped = None;
    while let Some(chunk) = body.next().await {
        let chunk = match chunk {
            Ok(chunk) => chunk,
            Err(error) => {
                stopped = Some(cut_off(&error));
                break;
            }
        };
        let Some(rest) = left.checked_sub(u64::try_from(chunk.len()).unwrap_or(u64::MAX)) else {
            stopped = Some(too_large(most));
            break;
        };
        left = rest;
        if sender.send(chunk).await.is_err() {
            // The reader has found a mistake and gone.
            break;
        }
    }
    drop(sender);
    let read = reading.await.map_err(|error| {
        tracing::error!(%error, "the task that reads a body panicked or was cancelled");
        Problem::new(
            Code::Internal,
            "the server failed; its log has the cause under the request id",
        )
    })?;
    match stopped {
        Some(problem) => Err(problem),
        None => read.map_err(|error| {
            Problem::new(Code::MalformedBody, format!("the body cannot be used: {error}"))
        }),
    }
}
