//! New ids.

use uuid::Uuid;

/// Makes ids that nobody has used before.
pub trait IdSource: Send + Sync {
    /// A new id.
    fn new_id(&self) -> Uuid;

    /// The id of the request that is being answered here, or that has caused what is done here.
    fn request_id(&self) -> Option<String> {
        None
    }
}
