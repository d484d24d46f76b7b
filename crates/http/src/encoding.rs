//! Bodies with a `Content-Encoding`: decoded piece by piece, under the limits of what comes out.

use std::io::{self, Write};

use actix_web::HttpRequest;
use actix_web::http::header::CONTENT_ENCODING;
use actix_web::web::Payload;
use flate2::write::MultiGzDecoder;
use futures_util::StreamExt;
use signalbox_services::Intake;
use zstd::stream::raw::{DParameter, Decoder};
use zstd::stream::zio::Writer;

use crate::dto::shown;
use crate::holding::Held;
use crate::pace::cut_off;
use crate::problem::{Code, Problem};
use crate::stream::too_large;

/// How many encoded bytes are decoded in one step. No encoding makes more than 4 MiB of them: zstd writes
/// 128 KiB of one repeated byte as 4.
const STEP: usize = 128;
/// How many decoded bytes are written together, unless a step makes more.
const PIECE: usize = 64 * 1_024;
/// The largest window of zstd, as a power of 2: 8 MiB, what its levels up to 19 need.
const WINDOW_LOG: u32 = 23;

/// How a body is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Identity,
    Gzip,
    Zstd,
}

impl Encoding {
    /// The encoding of a request's body.
    pub(crate) fn of(request: &HttpRequest) -> Result<Self, Problem> {
        let Some(given) = request.headers().get(CONTENT_ENCODING) else {
            return Ok(Self::Identity);
        };
        let word = given.to_str().unwrap_or_default().trim().to_ascii_lowercase();
        match word.as_str() {
            "" | "identity" => Ok(Self::Identity),
            "gzip" | "x-gzip" => Ok(Self::Gzip),
            "zstd" => Ok(Self::Zstd),
            _ => {
                let detail =
                    format!("the content encoding must be gzip or zstd, but is {}", shown(&word));
                Err(Problem::new(Code::WrongContentType, detail))
            }
        }
    }

    fn decoder(self) -> io::Result<Box<dyn Decode>> {
        Ok(match self {
            Self::Identity => Box::new(Vec::new()),
            Self::Gzip => Box::new(MultiGzDecoder::new(Vec::new())),
            Self::Zstd => {
                let mut decoder = Decoder::new()?;
                decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG))?;
                Box::new(Writer::new(Vec::new(), decoder))
            }
        })
    }
}

/// Takes encoded bytes and gives decoded ones.
trait Decode: Write {
    /// Decoded bytes that were not yet taken.
    fn decoded(&mut self) -> &mut Vec<u8>;

    /// Decodes the rest, once the body has ended. An error: it ended too early.
    fn end(&mut self) -> io::Result<()>;
}

impl Decode for Vec<u8> {
    fn decoded(&mut self) -> &mut Vec<u8> {
        self
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Decode for MultiGzDecoder<Vec<u8>> {
    fn decoded(&mut self) -> &mut Vec<u8> {
        self.get_mut()
    }

    fn end(&mut self) -> io::Result<()> {
        self.try_finish()
    }
}

impl Decode for Writer<Vec<u8>, Decoder<'_>> {
    fn decoded(&mut self) -> &mut Vec<u8> {
        self.writer_mut()
    }

    fn end(&mut self) -> io::Result<()> {
        self.finish()
    }
}

/// Writes a whole body into an upload's file as it is without its encoding; `most` bytes of that.
pub(crate) async fn into_upload(
    body: Payload,
    encoding: Encoding,
    upload: &mut Intake,
    most: u64,
) -> Result<(), Problem> {
    let keep = async |decoded: Vec<u8>| upload.write(&decoded).await.map_err(Problem::from);
    decode(body, encoding, most, keep).await
}

/// A whole body as it is without its encoding; `most` bytes of that, counted in `held`.
pub(crate) async fn whole(
    body: Payload,
    encoding: Encoding,
    most: u64,
    held: &mut Held,
) -> Result<Vec<u8>, Problem> {
    let mut text = Vec::new();
    let keep = async |decoded: Vec<u8>| {
        held.add(decoded.len())?;
        text.extend_from_slice(&decoded);
        Ok(())
    };
    decode(body, encoding, most, keep).await?;
    Ok(text)
}

async fn decode(
    mut body: Payload,
    encoding: Encoding,
    most: u64,
    mut write: impl AsyncFnMut(Vec<u8>) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let wrong = |error: &dyn std::fmt::Display| {
        Problem::new(Code::MalformedBody, format!("the body cannot be decoded: {error}"))
    };
    let mut decoder = encoding.decoder().map_err(|error| wrong(&error))?;
    let mut left = most;
    let mut keep = async |decoded: &mut Vec<u8>| {
        let length = u64::try_from(decoded.len()).unwrap_or(u64::MAX);
        left = left.checked_sub(length).ok_or_else(|| too_large(most))?;
        write(std::mem::take(decoded)).await
    };
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|error| cut_off(&error))?;
        for step in chunk.chunks(STEP) {
            decoder.write_all(step).map_err(|error| wrong(&error))?;
            if decoder.decoded().len() >= PIECE {
                keep(decoder.decoded()).await?;
            }
        }
    }
    decoder.end().map_err(|error| wrong(&error))?;
    keep(decoder.decoded()).await
}
