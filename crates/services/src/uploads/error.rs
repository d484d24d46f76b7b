//! Why an upload was not taken.

use thiserror::Error;

use signalbox_domain::flaky::UploadId;
use signalbox_domain::ports::BlobError;

/// Why an upload was not taken.
#[derive(Debug, Error)]
pub enum UploadError {
    /// There is no such upload, or it is another organization's.
    #[error("upload {0} not found")]
    Unknown(UploadId),
    /// The address was not made by this server, or for another upload.
    #[error("invalid signature in the address of the upload")]
    WrongSignature,
    /// The address is too old.
    #[error("the upload's address has expired: announce the upload again")]
    Expired,
    /// The organization named is not that of the repository with the public id.
    #[error(
        "orgUrlSlug is {given:?}, which is not the organization of the repository with this public id"
    )]
    NotOfPublicId {
        /// The one named.
        given: String,
    },
    /// The organization named is not the token's.
    #[error("orgUrlSlug must be {wanted:?}, the organization of the token, but is {given:?}")]
    WrongOrganization {
        /// The token's.
        wanted: String,
        /// The one named.
        given: String,
    },
    /// An unauthenticated client sends too much.
    #[error("too many calls with the public id of this repository: try again in ten minutes")]
    TooOften,
    /// More files than an upload may have.
    #[error("the upload has more than {most} files")]
    TooManyFiles {
        /// The limit.
        most: usize,
    },
    /// There is no file in it.
    #[error("the upload has no file")]
    Empty,
    /// The bytes were not kept.
    #[error(transparent)]
    Blob(#[from] BlobError),
}
