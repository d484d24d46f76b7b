//! What goes wrong, as planned.

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A status with no useful body.
    Status(u16),
    /// A secondary limit: 403 with `Retry-After` in seconds.
    Secondary(u32),
    /// The quota is used up: 403 with the headers of the primary limit.
    QuotaUsedUp,
    /// The request is carried out, and its answer is a 502.
    LostAnswer,
}

/// A fault that waits for its request.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub(super) method: String,
    pub(super) path_part: String,
    pub(super) times: u32,
    pub(super) fault: Fault,
}

/// Finds the fault for a request and counts it down.
pub(super) fn meet(planned: &mut [Planned], method: &str, path: &str) -> Option<Fault> {
    let one = planned.iter_mut().find(|it| {
        it.times > 0
            && (it.method.is_empty() || it.method == method)
            && path.contains(&it.path_part)
    })?;
    one.times -= 1;
    Some(one.fault)
}
