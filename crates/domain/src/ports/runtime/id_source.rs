//! The source of ids.

use uuid::Uuid;

/// Generates unique ids.
pub trait IdSource: Send + Sync {
    /// A new id.
    fn new_id(&self) -> Uuid;

    /// The id of the request that is handled on this task, or that caused the present work.
    fn request_id(&self) -> Option<String> {
        None
    }
}
