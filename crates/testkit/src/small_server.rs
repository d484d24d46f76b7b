//! Helpers for tests of a server on adapters in memory: a repository whose checks can be made to
//! fail, and a loop that runs effects.

use std::sync::Arc;

use signalbox_domain::ids::RepoName;
use signalbox_domain::queue::{CheckConclusion, EffectClass};
use signalbox_domain::testing::ManualClock;
use signalbox_domain::time::Span;
use signalbox_services::EffectRunner;

use signalbox_conformance::fake_host::FakeHost;

/// The most rounds of effects, each a second long.
const ROUNDS: u32 = 100;
/// The most effects in one lease.
const AT_ONCE: u32 = 10;

/// The repository `git.test/acme/calc`.
pub fn calc() -> RepoName {
    RepoName::parse("git.test/acme/calc").expect("a name")
}

/// A host with [`calc`], which has the file `a`. Checks fail on a tree with a file `bad`.
pub fn calc_host(clock: Arc<ManualClock>) -> Arc<FakeHost> {
    let host = FakeHost::new(clock, |files| {
        if files.contains_key("bad") { CheckConclusion::Failure } else { CheckConclusion::Success }
    });
    host.add_repository(&calc(), &[("a", "1")]);
    Arc::new(host)
}

/// Runs effects until none is due, except those of the `held` classes. Each round advances the
/// clock by a second. Panics if an effect fails, or if effects are left after 100 rounds.
pub async fn settle(runner: &EffectRunner, clock: &ManualClock, held: &[EffectClass]) {
    for _ in 0..ROUNDS {
        let mut idle = true;
        for class in EffectClass::ALL.iter().filter(|class| !held.contains(class)) {
            for leased in runner.lease(*class, AT_ONCE).await.expect("a lease") {
                idle = false;
                let sink = runner.sink(&leased);
                runner.run(&leased, &sink).await.expect("an effect is run");
            }
        }
        if idle {
            return;
        }
        clock.advance(Span::seconds(1));
    }
    panic!("effects are left after {ROUNDS} rounds");
}
