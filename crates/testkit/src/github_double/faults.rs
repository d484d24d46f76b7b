//! What goes wrong, as planned.

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A status with no useful body.
    Status(u16),
    /// A status with these words.
    Refusal(u16, &'static str),
    /// A secondary limit: 403 with `Retry-After` in seconds.
    Secondary(u32),
    /// The quota is used up for so many seconds: 403 with the headers of the primary limit.
    QuotaUsedUp(u32),
    /// The connection is closed without an answer; the request was not carried out.
    Broken,
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

/// Trouble that goes on: one request of so many meets the next fault of a list.
#[derive(Clone, Debug, Default)]
pub(super) struct Trouble {
    pub(super) one_in: u64,
    pub(super) faults: Vec<Fault>,
    pub(super) seen: u64,
}

impl Trouble {
    fn meet(&mut self) -> Option<Fault> {
        self.seen += 1;
        let number = self.seen.checked_div(self.one_in)?;
        let is_met = self.seen.is_multiple_of(self.one_in);
        let at = usize::try_from(number).ok()?.checked_rem(self.faults.len())?;
        self.faults.get(at).copied().filter(|_| is_met)
    }
}

/// Finds the fault for a request and counts it down.
pub(super) fn meet(
    planned: &mut [Planned],
    trouble: &mut Trouble,
    method: &str,
    path: &str,
) -> Option<Fault> {
    planned_for(planned, method, path).or_else(|| trouble.meet())
}

fn planned_for(planned: &mut [Planned], method: &str, path: &str) -> Option<Fault> {
    let one = planned.iter_mut().find(|it| {
        it.times > 0
            && (it.method.is_empty() || it.method == method)
            && path.contains(&it.path_part)
    })?;
    one.times -= 1;
    Some(one.fault)
}
