//! Replies compressed with gzip for browsers that accept it.

use std::io::Write as _;

use actix_web::HttpRequest;
use actix_web::http::header::ACCEPT_ENCODING;
use flate2::{Compression, GzBuilder};

/// Whether the browser accepts gzip: it is listed, and not with weight 0.
pub(crate) fn takes_gzip(request: &HttpRequest) -> bool {
    let header = request.headers().get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    header.unwrap_or_default().split(',').any(|part| {
        let mut words = part.split(';').map(str::trim);
        let none =
            |weight: &str| weight.strip_prefix("q=").and_then(|it| it.parse().ok()) == Some(0.0);
        words.next() == Some("gzip") && !words.any(none)
    })
}

/// Compresses an embedded file, once and at the best level.
pub(crate) fn file(bytes: &[u8]) -> Vec<u8> {
    packed(bytes, 0, Compression::best())
}

/// Compresses a page. A page contains both secrets and parts of its address, and its compressed
/// length would reveal whether they match (BREACH). So each reply is made longer by a random number
/// of bytes: `padding` is 0 to 255.
pub(crate) fn page(text: &str, padding: u8) -> Vec<u8> {
    packed(text.as_bytes(), padding, Compression::fast())
}

/// `None` when it cannot be compressed.
fn packed(bytes: &[u8], padding: u8, how_well: Compression) -> Vec<u8> {
    let mut packer = GzBuilder::new();
    if padding > 0 {
        // The file name in a gzip header is sent uncompressed, and browsers ignore it.
        packer = packer.filename("p".repeat(usize::from(padding)));
    }
    let mut packer = packer.write(Vec::new(), how_well);
    // Writing to a vector does not fail.
    packer.write_all(bytes).and_then(|()| packer.finish()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn unpacked(bytes: &[u8]) -> String {
        let mut text = String::new();
        flate2::read::GzDecoder::new(bytes).read_to_string(&mut text).expect("it is gzip");
        text
    }

    #[test]
    fn a_compressed_page_is_unchanged_and_its_length_is_random() {
        let text = "a line of a page\n".repeat(1_000);
        let lengths = [0, 1, 7, 255].map(|padding| {
            let bytes = page(&text, padding);
            assert_eq!(unpacked(&bytes), text);
            bytes.len()
        });
        assert!(lengths.is_sorted_by(|one, next| one < next), "{lengths:?}");
        assert!(lengths[3] < 1_000, "{lengths:?}");
    }

    #[test]
    fn only_browsers_that_accept_gzip_get_it() {
        for (header, takes) in [
            ("gzip, deflate, br, zstd", true),
            ("br;q=1.0, gzip;q=0.8", true),
            ("gzip;q=0", false),
            ("identity", false),
            ("", false),
        ] {
            let request = actix_web::test::TestRequest::default();
            let request = request.insert_header((ACCEPT_ENCODING, header)).to_http_request();
            assert_eq!(takes_gzip(&request), takes, "{header}");
        }
    }
}
