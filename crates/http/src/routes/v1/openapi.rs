//! `GET /v1/openapi.json`.

use std::convert::Infallible;

use actix_web::HttpResponse;
use actix_web::body::SizedStream;
use actix_web::http::header::{AcceptEncoding, ContentEncoding, ContentType, Encoding, VARY};
use actix_web::web::{Bytes, Data, Header};
use futures_util::{Stream, stream};

use crate::api::Api;
use crate::failures::OfOpen;

/// The bytes of a piece.
const PIECE: usize = 32 * 1024;

/// A large body in pieces, so that the server copies no more than one for a client that does not read.
fn in_pieces(whole: &Bytes) -> SizedStream<impl Stream<Item = Result<Bytes, Infallible>> + use<>> {
    let size = u64::try_from(whole.len()).unwrap_or(u64::MAX);
    let mut rest = whole.clone();
    let pieces = std::iter::from_fn(move || {
        let piece = rest.split_to(rest.len().min(PIECE));
        (!piece.is_empty()).then_some(Ok(piece))
    });
    SizedStream::new(size, stream::iter(pieces))
}

/// Get this OpenAPI description.
#[utoipa::path(
    get,
    path = "/v1/openapi.json",
    operation_id = "getOpenApi",
    tag = "service",
    responses((status = OK, description = "The description of the API, in OpenAPI 3.1.", body = Object, content_type = "application/json", example = json!({"openapi": "3.1.0", "info": {"title": "Signalbox", "version": "1.0.0"}})), OfOpen),
)]
pub(crate) async fn handle(
    api: Data<Api>,
    accepted: Option<Header<AcceptEncoding>>,
) -> HttpResponse {
    let served = api.events.catalog.served();
    let offered = [Encoding::gzip(), Encoding::identity()];
    let chosen = accepted.and_then(|accepted| accepted.negotiate(offered.iter()));
    let mut reply = HttpResponse::Ok();
    reply.content_type(ContentType::json()).insert_header((VARY, "accept-encoding"));
    match &served.gzip {
        Some(gzip) if chosen == Some(Encoding::gzip()) => {
            reply.insert_header(ContentEncoding::Gzip).body(gzip.clone())
        }
        _ => reply.body(in_pieces(&served.plain)),
    }
}
