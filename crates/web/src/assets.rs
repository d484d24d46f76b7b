//! Styles, scripts and the icon: part of the program, under addresses that change with their
//! contents, so that browsers may cache them forever.

use std::sync::LazyLock;

use actix_web::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, VARY,
};
use actix_web::web::{Bytes, Path};
use actix_web::{HttpRequest, HttpResponse};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::packing::{self, takes_gzip};
use crate::reply::Status;

/// A file that is part of the program.
pub(crate) struct Asset {
    pub(crate) name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
    /// The contents, compressed with gzip.
    packed: Bytes,
    /// Its address: the name with a part of the hash of its contents.
    pub(crate) path: String,
}

const FOREVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! asset {
    ($name:literal, $kind:expr, $file:literal) => {
        Asset::new($name, $kind, include_bytes!(concat!("../assets/", $file)))
    };
}

/// Every file.
pub(crate) static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    vec![
        asset!("signalbox.css", "text/css; charset=utf-8", "own/signalbox.css"),
        asset!("icon.svg", "image/svg+xml", "own/icon.svg"),
        asset!("htmx.js", SCRIPT, "vendor/htmx-2.0.11.js"),
        asset!("sse.js", SCRIPT, "vendor/htmx-ext-sse-2.2.4.js"),
        asset!("idiomorph.js", SCRIPT, "vendor/idiomorph-0.8.0.js"),
        asset!("live.js", SCRIPT, "own/live.js"),
        asset!("keys.js", SCRIPT, "own/keys.js"),
    ]
});

impl Asset {
    fn new(name: &'static str, kind: &'static str, bytes: &'static [u8]) -> Self {
        let digest: [u8; 32] = Sha256::digest(bytes).into();
        let print = HEXLOWER.encode(digest.get(..6).unwrap_or_default());
        let (stem, end) = name.rsplit_once('.').unwrap_or((name, ""));
        let path = format!("/assets/{stem}-{print}.{end}");
        Self { name, kind, bytes, packed: packing::file(bytes).into(), path }
    }
}

/// The address of a file.
pub(crate) fn path(name: &str) -> String {
    ASSETS.iter().find(|asset| asset.name == name).map(|it| it.path.clone()).unwrap_or_default()
}

/// `GET /assets/{file}`.
pub(crate) async fn handle(request: HttpRequest, _: Path<String>) -> HttpResponse {
    let Some(asset) = ASSETS.iter().find(|asset| asset.path == request.path()) else {
        return Status::Missing.reply().finish();
    };
    let mut reply = HttpResponse::Ok();
    reply
        .insert_header((CONTENT_TYPE, asset.kind))
        .insert_header((CACHE_CONTROL, FOREVER))
        .insert_header((VARY, ACCEPT_ENCODING.as_str()));
    if takes_gzip(&request) && !asset.packed.is_empty() {
        return reply.insert_header((CONTENT_ENCODING, "gzip")).body(asset.packed.clone());
    }
    reply.body(asset.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendored_files_match_their_published_sums() {
        let sums = include_str!("../assets/vendor/SHA256SUMS");
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/vendor");
        let mut scripts = 0;
        for line in sums.lines() {
            let (sum, name) = line.split_once("  ").expect("a sum and a name");
            let bytes = std::fs::read(format!("{folder}/{name}")).expect("the file");
            let digest: [u8; 32] = Sha256::digest(&bytes).into();
            assert_eq!(HEXLOWER.encode(&digest), sum, "{name} was changed");
            let license = name.replace(".js", ".LICENSE");
            assert!(std::fs::exists(format!("{folder}/{license}")).expect("a look"), "{license}");
            scripts += 1;
        }
        let vendored = std::fs::read_dir(folder).expect("the folder").filter_map(Result::ok);
        let all = vendored.filter(|it| it.path().extension().is_some_and(|end| end == "js"));
        assert_eq!(all.count(), scripts, "every vendored script has a sum");
    }

    #[test]
    fn own_scripts_make_no_markup_or_code_and_keep_one_switch() {
        const NEVER: [&str; 12] = [
            "eval(",
            "new Function",
            "innerHTML",
            "insertAdjacentHTML",
            "document.write",
            "document.cookie",
            "sessionStorage",
            "indexedDB",
            "postMessage",
            "__proto__",
            "Object.assign",
            "fetch(",
        ];
        let own = ASSETS.iter().filter(|asset| ["live.js", "keys.js"].contains(&asset.name));
        let own: Vec<&str> = own.filter_map(|it| std::str::from_utf8(it.bytes).ok()).collect();
        assert_eq!(own.len(), 2);
        for script in own {
            for word in NEVER {
                assert!(!script.contains(word), "{word}");
            }
            assert!(script.contains("\"use strict\""));
            let stored = script.lines().filter(|line| line.contains("localStorage"));
            stored.for_each(|line| assert!(line.contains("Item(\"keys\""), "{line}"));
        }
    }

    #[test]
    fn packed_files_are_the_same() {
        use std::io::Read as _;
        for asset in ASSETS.iter() {
            let mut text = Vec::new();
            let mut unpacked = flate2::read::GzDecoder::new(asset.packed.as_ref());
            unpacked.read_to_end(&mut text).expect("it is gzip");
            assert_eq!(text, asset.bytes, "{}", asset.name);
        }
    }

    #[test]
    fn all_files_together_are_small() {
        let bytes: usize = ASSETS.iter().map(|asset| asset.bytes.len()).sum();
        assert!(bytes < 100 * 1024, "{bytes} bytes");
        let sent: usize = ASSETS.iter().map(|asset| asset.packed.len()).sum();
        assert!(sent < 32 * 1024, "{sent} bytes are sent");
        let links = ASSETS.iter().map(|asset| path(asset.name)).filter(|path| path.len() > 20);
        assert_eq!(links.count(), ASSETS.len());
    }
}
