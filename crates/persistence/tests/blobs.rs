//! Blobs as files: complete or absent, within limits, readable by their owner only.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;

use signalbox_domain::flaky::Trust;
use signalbox_domain::ids::{OrgId, RepoId};
use signalbox_domain::ports::{Blob, BlobError, BlobStore};
use signalbox_domain::time::Timestamp;
use signalbox_domain::upload::{BlobOwner, ContentHash};
use signalbox_persistence::FileBlobs;
use tempfile::TempDir;
use uuid::Uuid;

fn store(most: u64) -> (FileBlobs, TempDir) {
    let folder = TempDir::new().expect("a folder");
    (FileBlobs::new(folder.path().join("uploads"), most), folder)
}

async fn put(blobs: &FileBlobs, prefix: &str, content: &[u8]) -> Result<Blob, BlobError> {
    let mut writer = blobs.begin(prefix, 100).await?;
    for chunk in content.chunks(7) {
        writer.write(chunk).await?;
    }
    writer.finish().await
}

async fn get(blobs: &FileBlobs, key: &str) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    blobs.open(key).await.expect("a read")?.read_to_end(&mut content).expect("bytes");
    Some(content)
}

fn names(folder: &TempDir) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path().join("uploads")).expect("a folder");
    entries.map(|it| it.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

#[tokio::test]
async fn a_finished_blob_is_complete_and_readable_by_its_owner_only() {
    let (blobs, folder) = store(1_000);
    let blob = put(&blobs, "a-0", b"hello, results").await.expect("kept");
    assert_eq!((blob.bytes, blob.hash), (14, ContentHash::of(b"hello, results")));
    assert_eq!(get(&blobs, &blob.key).await.as_deref(), Some(&b"hello, results"[..]));
    let path = folder.path().join("uploads").join(&blob.key);
    let mode = std::fs::metadata(path).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    blobs.delete(&blob.key).await.expect("removed");
    blobs.delete(&blob.key).await.expect("deleting it again succeeds");
    assert_eq!(get(&blobs, &blob.key).await, None);
}

#[tokio::test]
async fn a_dropped_or_too_large_blob_leaves_no_file() {
    let (blobs, folder) = store(1_000);
    let mut writer = blobs.begin("a-0", 100).await.expect("begun");
    writer.write(&[1; 60]).await.expect("written");
    let error = writer.write(&[1; 41]).await.expect_err("too large");
    assert!(matches!(error, BlobError::TooLarge { most: 100 }));
    drop(writer);
    assert!(names(&folder).is_empty());
}

#[tokio::test]
async fn the_total_size_is_limited_and_deletion_releases_room() {
    let (blobs, folder) = store(100);
    let first = put(&blobs, "a-0", &[1; 60]).await.expect("kept");
    assert!(matches!(put(&blobs, "b-0", &[2; 60]).await, Err(BlobError::Full)));
    let small =
        put(&blobs, "b-0", &[2; 40]).await.expect("there is room: the failed chunk was released");
    put(&blobs, "b-0", &[3; 1]).await.expect_err("full");
    blobs.delete(&small.key).await.expect("removed");
    put(&blobs, "b-0", &[2; 40]).await.expect("kept");
    let reopened = FileBlobs::new(folder.path().join("uploads"), 100);
    assert!(matches!(put(&reopened, "c-0", &[1]).await, Err(BlobError::Full)));
    assert!(get(&reopened, &first.key).await.is_some());
}

/// The prefix of a sender's blobs.
fn owned(org: u128, repo: u128, trust: Trust) -> String {
    let (org, repo) = (OrgId(Uuid::from_u128(org)), RepoId(Uuid::from_u128(repo)));
    format!("{}-x", BlobOwner { org, repo, trust }.prefix())
}

#[tokio::test]
async fn no_sender_takes_the_room_of_another() {
    use Trust::{Public, Token};
    let (blobs, folder) = store(800);
    let full = async |blobs: &FileBlobs, prefix: &str| match put(blobs, prefix, &[1; 7]).await {
        Err(BlobError::ShareFull { of }) => of,
        other => panic!("{other:?}"),
    };
    let stored = async |prefix: String, bytes: usize| {
        for number in 0..bytes / 100 {
            put(&blobs, &format!("{prefix}-{number}"), &[1; 100]).await.expect("kept");
        }
    };
    stored(owned(1, 1, Public), 100).await;
    let of_public_repository = "senders with the public id of the repository";
    assert_eq!(full(&blobs, &owned(1, 1, Public)).await, of_public_repository);
    stored(owned(1, 2, Public), 100).await;
    assert_eq!(full(&blobs, &owned(2, 9, Public)).await, "senders with a public id");
    stored(owned(1, 1, Token), 300).await;
    assert_eq!(full(&blobs, &owned(1, 1, Token)).await, "the repository");
    stored(owned(1, 2, Token), 100).await;
    assert_eq!(full(&blobs, &owned(1, 3, Token)).await, "the organization");
    stored(owned(2, 9, Token), 200).await;
    assert!(matches!(put(&blobs, &owned(3, 10, Token), b"x").await, Err(BlobError::Full)));
    // Another start counts the files, and a deleted one makes room in its shares.
    let reopened = FileBlobs::new(folder.path().join("uploads"), 800);
    assert_eq!(full(&reopened, &owned(1, 1, Public)).await, of_public_repository);
    let mine = owned(1, 1, Public);
    let key = names(&folder).into_iter().find(|name| name.starts_with(&mine)).expect("a key");
    reopened.delete(&key).await.expect("deleted");
    put(&reopened, &mine, b"x").await.expect("kept");
    let past = Timestamp::from_unix_seconds(0);
    blobs.sweep(past, 9).await.expect("counted again");
    put(&blobs, &mine, b"y").await.expect("kept");
}

#[tokio::test]
async fn old_files_are_swept_including_unfinished_ones() {
    let (blobs, folder) = store(100);
    put(&blobs, "a-0", b"x").await.expect("kept");
    assert_eq!(store(100).0.sweep(Timestamp::from_unix_seconds(0), 9).await.expect("none"), 0);
    std::fs::write(folder.path().join("uploads/.part-left"), b"y").expect("written");
    let (past, future) =
        (Timestamp::from_unix_seconds(0), Timestamp::from_unix_seconds(32_503_680_000));
    assert_eq!(blobs.sweep(past, 9).await.expect("swept"), 0);
    assert_eq!(blobs.sweep(future, 1).await.expect("swept"), 1);
    assert_eq!(blobs.sweep(future, 9).await.expect("swept"), 1);
    assert!(names(&folder).is_empty());
    put(&blobs, "a-0", &[1; 100]).await.expect("there is room for all again");
}

#[tokio::test]
async fn a_key_cannot_escape_the_folder() {
    let (blobs, _folder) = store(100);
    for key in ["", "../x", "/etc/passwd", "a/b", ".part-x", "a\0"] {
        assert!(blobs.open(key).await.is_err(), "{key:?}");
        assert!(blobs.begin(key, 1).await.is_err(), "{key:?}");
    }
}
