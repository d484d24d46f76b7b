//! Blobs as objects in a bucket: complete or absent, within a limit, in parts.

use std::io::Read;
use std::time::{Duration, Instant};

use signalbox_domain::ports::{Blob, BlobError, BlobStore};
use signalbox_domain::time::Timestamp;
use signalbox_domain::upload::ContentHash;
use signalbox_persistence::{Bucket, ObjectBlobs};
use signalbox_testkit::s3_double::{ACCESS_KEY, S3Double};
use tempfile::TempDir;

const MIB: usize = 1024 * 1024;

fn store(service: &S3Double, secret: &str) -> (ObjectBlobs, TempDir) {
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let spool = TempDir::new().expect("a folder");
    let bucket = Bucket {
        name: "uploads".into(),
        prefix: "box".into(),
        endpoint: Some(service.url.clone()),
        region: Some("us-east-1".into()),
        access_key: Some((secret.into(), "secret".into())),
    };
    let blobs = ObjectBlobs::new(bucket, spool.path().join("spool")).expect("a store");
    (blobs, spool)
}

async fn put(blobs: &ObjectBlobs, prefix: &str, content: &[u8]) -> Result<Blob, BlobError> {
    let mut writer = blobs.begin(prefix, 20 * MIB as u64).await?;
    for chunk in content.chunks(MIB - 7) {
        writer.write(chunk).await?;
    }
    writer.finish().await
}

async fn get(blobs: &ObjectBlobs, key: &str) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    blobs.open(key).await.expect("a read")?.read_to_end(&mut content).expect("bytes");
    Some(content)
}

#[tokio::test]
async fn a_written_object_is_readable_by_every_server() {
    let service = S3Double::start();
    let (first, _folder) = store(&service, ACCESS_KEY);
    let (second, spool) = store(&service, ACCESS_KEY);
    let large: Vec<u8> = (0..12 * MIB).map(|at| at.to_le_bytes()[at % 3]).collect();
    for (content, multipart) in [(&b"few bytes"[..], 0), (b"", 0), (&large, 1)] {
        let blob = put(&first, "a-1", content).await.expect("kept");
        assert!(blob.key.starts_with("a-1-"), "{}", blob.key);
        assert_eq!(blob.bytes, content.len() as u64);
        assert_eq!(blob.hash, ContentHash::of(content));
        assert_eq!(service.multipart(), (multipart, 0));
        assert!(get(&second, &blob.key).await.as_deref() == Some(content));
        second.delete(&blob.key).await.expect("deleted");
        second.delete(&blob.key).await.expect("deleting it again succeeds");
        assert_eq!(get(&first, &blob.key).await, None);
    }
    let left = std::fs::read_dir(spool.path().join("spool")).expect("a folder").count();
    assert_eq!(left, 0, "no file is left behind");
    assert!(service.keys().is_empty());
}

#[tokio::test]
async fn an_unfinished_object_leaves_no_parts() {
    let service = S3Double::start();
    let (blobs, _folder) = store(&service, ACCESS_KEY);
    let mut writer = blobs.begin("b", 8 * MIB as u64).await.expect("begun");
    for _ in 0..7 {
        writer.write(&vec![1; MIB]).await.expect("written");
    }
    assert_eq!(service.multipart(), (0, 1), "a part was sent");
    let error = writer.write(&vec![1; 2 * MIB]).await.expect_err("too many");
    assert!(matches!(error, BlobError::TooLarge { most } if most == 8 * MIB as u64), "{error}");
    drop(writer);
    let begun = Instant::now();
    while service.multipart().1 > 0 {
        assert!(begun.elapsed() < Duration::from_secs(30), "the parts are still there");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(service.keys().is_empty());
}

#[tokio::test]
async fn old_objects_are_swept_and_keys_cannot_escape_the_prefix() {
    let service = S3Double::start();
    let (blobs, _folder) = store(&service, ACCESS_KEY);
    for prefix in ["a", "b", "c"] {
        put(&blobs, prefix, b"x").await.expect("kept");
    }
    let long_ago = Timestamp::from_unix_seconds(1_000_000_000);
    assert_eq!(blobs.sweep(long_ago, 10).await.expect("swept"), 0);
    let far_away = Timestamp::from_unix_seconds(10_000_000_000);
    assert_eq!(blobs.sweep(far_away, 2).await.expect("swept"), 2);
    assert_eq!(blobs.sweep(far_away, 2).await.expect("swept"), 1);
    for key in ["", "../x", "a/b", "a\0", "ü"] {
        assert!(blobs.open(key).await.is_err(), "{key:?}");
    }
}

#[tokio::test]
async fn an_invalid_access_key_is_an_error_and_not_an_empty_bucket() {
    let service = S3Double::start();
    let (blobs, _folder) = store(&service, "another");
    let error = put(&blobs, "a", b"x").await.expect_err("refused");
    assert!(matches!(error, BlobError::Failed(_)), "{error}");
    assert!(blobs.open("a-1").await.is_err());
    assert!(service.refused() > 0);
}
