//! Bodies with a `Content-Encoding`: decoded piece by piece, under the limits of what comes out.

use std::io::{self, Write};

use actix_web::HttpRequest;
use actix_web::http::header::CONTENT_ENCODING;
use actix_web::web::Payload;
use flate2::write::MultiGzDecoder;
use futures_util::StreamExt;
use signalbox_services::Intake;
use zstd::stream::write::Decoder;

use crate::dto::shown;
use crate::problem::{Code, Problem};
use crate::stream::too_large;

/// The size of a step in bytes: the output of one step is written before the next is decoded.
const STEP: usize = 1_024;
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
                let mut decoder = Decoder::new(Vec::new())?;
                decoder.window_log_max(WINDOW_LOG)?;
                Box::new(decoder)
            }
        })
    }
}

/// Takes encoded bytes and gives decoded ones.
trait Decode: Write {
    /// What was decoded since it was last asked.
    fn take(&mut self) -> Vec<u8>;

    /// The rest, once the body has ended. An error: it ended too early.
    fn end(&mut self) -> io::Result<Vec<u8>>;
}

impl Decode for Vec<u8> {
    fn take(&mut self) -> Vec<u8> {
        std::mem::take(self)
    }

    fn end(&mut self) -> io::Result<Vec<u8>> {
        Ok(self.take())
    }
}

impl Decode for MultiGzDecoder<Vec<u8>> {
    fn take(&mut self) -> Vec<u8> {
        std::mem::take(self.get_mut())
    }

    fn end(&mut self) -> io::Result<Vec<u8>> {
        self.try_finish()?;
        Ok(self.take())
    }
}

impl Decode for Decoder<'_, Vec<u8>> {
    fn take(&mut self) -> Vec<u8> {
        std::mem::take(self.get_mut())
    }

    fn end(&mut self) -> io::Result<Vec<u8>> {
        self.flush()?;
        Ok(self.take())
    }
}

/// Writes a whole body into an upload's file as it is without its encoding; `most` bytes of that.
pub(crate) async fn into_upload(
    mut body: Payload,
    encoding: Encoding,
    upload: &mut Intake,
    most: u64,
) -> Result<(), Problem> {
    let wrong = |error: &dyn std::fmt::Display| {
        Problem::new(Code::MalformedBody, format!("the body cannot be decoded: {error}"))
    };
    let mut decoder = encoding.decoder().map_err(|error| wrong(&error))?;
    let mut left = most;
    let mut keep = async |decoded: Vec<u8>| {
        let length = u64::try_from(decoded.len()).unwrap_or(u64::MAX);
        left = left.checked_sub(length).ok_or_else(|| too_large(most))?;
        upload.write(&decoded).await.map_err(Problem::from)
    };
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|error| wrong(&error))?;
        for step in chunk.chunks(STEP) {
            decoder.write_all(step).map_err(|error| wrong(&error))?;
            keep(decoder.take()).await?;
        }
    }
    keep(decoder.end().map_err(|error| wrong(&error))?).await
}
