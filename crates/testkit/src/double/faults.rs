//! Planned faults.

/// A fault of a double.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A status with no useful body.
    Status(u16),
    /// A status with this message.
    Refusal(u16, &'static str),
    /// A secondary limit: 403 with `Retry-After` in seconds.
    Secondary(u32),
    /// The primary limit is exceeded for this many seconds: 403 with its headers.
    QuotaUsedUp(u32),
    /// The connection is closed without an answer; the request was not carried out.
    Broken,
    /// The request is carried out, and its answer is a 502.
    LostAnswer,
}

/// A fault that waits for its request.
#[derive(Clone, Debug)]
struct Planned {
    method: String,
    path_part: String,
    times: u32,
    fault: Fault,
}

/// A recurring fault: one request in `one_in` meets the next fault of a list.
#[derive(Clone, Debug, Default)]
struct Trouble {
    one_in: u64,
    faults: Vec<Fault>,
    seen: u64,
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

/// All planned faults.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    planned: Vec<Planned>,
    trouble: Trouble,
}

impl Faults {
    pub(super) fn plan(&mut self, method: &str, path_part: &str, times: u32, fault: Fault) {
        let (method, path_part) = (method.to_owned(), path_part.to_owned());
        self.planned.push(Planned { method, path_part, times, fault });
    }

    pub(super) fn trouble(&mut self, one_in: u64, faults: &[Fault]) {
        self.trouble = Trouble { one_in, faults: faults.to_vec(), seen: 0 };
    }

    /// Finds the fault for a request and counts it down.
    pub(super) fn meet(&mut self, method: &str, path: &str) -> Option<Fault> {
        let planned = self.planned.iter_mut().find(|it| {
            it.times > 0
                && (it.method.is_empty() || it.method == method)
                && path.contains(&it.path_part)
        });
        if let Some(one) = planned {
            one.times -= 1;
            return Some(one.fault);
        }
        self.trouble.meet()
    }
}
