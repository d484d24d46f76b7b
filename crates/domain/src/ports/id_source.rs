//! New ids.

use uuid::Uuid;

/// Makes ids that nobody has used before.
pub trait IdSource: Send + Sync {
    /// A new id.
    fn new_id(&self) -> Uuid;
}
