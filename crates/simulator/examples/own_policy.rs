//! A policy of a team's own beside the standard one, on the same pull requests:
//! `cargo run --release -p signalbox-simulator --example own_policy`.
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use signalbox_domain::queue::{Entry, Policy, PolicyId, PolicyView, Settings, SharedPolicy};
use signalbox_simulator::{Choice, Effort, SimulationError, Study, Workload};

/// Batches that grow with the queue: as many pull requests as wait for each free slot, up to the setting
/// `batchingMinSize`.
#[derive(Debug)]
pub(crate) struct Growing;

impl Policy for Growing {
    fn id(&self) -> PolicyId {
        PolicyId::new("growing", 1)
    }

    fn batch_size(&self, view: &PolicyView<'_>, _first: &Entry) -> u32 {
        let (used, most) = view.slots();
        let free = most.saturating_sub(used).max(1);
        let size = u32::try_from(view.waiting()).unwrap_or(u32::MAX).div_ceil(free);
        size.clamp(1, view.settings().batching_min_size)
    }
}

pub(crate) fn main() -> Result<(), SimulationError> {
    let others = Settings::builder().batching_max_wait_time_minutes(5_u32).build()?;
    let workload = Workload { pull_requests: 300, failing: 0.05, ..Workload::default() };
    let choices = [SharedPolicy::default(), SharedPolicy::from(Growing)]
        .into_iter()
        .flat_map(|policy| [10, 20].map(|slots| (slots, policy.clone())))
        .map(|(slots, policy)| Ok(Choice::new(slots, 8, &others)?.with_policy(policy)))
        .collect::<Result<Vec<Choice>, SimulationError>>()?;
    let seeds = if cfg!(debug_assertions) { 2 } else { 20 };
    let study = Study::new(&workload, choices, Effort::seeds(seeds))?;
    for finding in &study.findings {
        let policy = finding.choice.policy.id().to_string();
        let slots = finding.choice.concurrency;
        let (median, p95, runs) = (finding.median.mean, finding.p95.mean, finding.runs.mean);
        println!(
            "{policy:12} {slots} slots: median {median:.0} P95 {p95:.0} minutes, {runs:.2} runs/PR"
        );
    }
    Ok(())
}
