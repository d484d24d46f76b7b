//! The catalog of public events.

/// The kinds of public events.
pub trait EventCatalog: Send + Sync {
    /// The public names of all kinds.
    fn kinds(&self) -> Vec<String>;

    /// The public names of the kinds that an endpoint without a list receives.
    fn defaults(&self) -> Vec<String>;

    /// A sample payload of a kind; `None` for an unknown one.
    fn example(&self, kind: &str) -> Option<String>;
}
