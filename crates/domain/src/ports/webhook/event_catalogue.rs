//! The public events by name.

/// Which events there are.
pub trait EventCatalogue: Send + Sync {
    /// Their public names.
    fn kinds(&self) -> Vec<String>;

    /// A payload as an event of that name has it; `None`: there is none.
    fn example(&self, kind: &str) -> Option<String>;
}
