//! Deterministic simulation of the whole system, from a seed.
//!
//! The real services run on the real ports. Around them, callers and authors act at random, hosts
//! and databases fail or answer late, servers die between any two calls, and the clock is
//! simulated. The invariants are checked after every commit and every landing; at the end the
//! faults stop, and the queue must settle.
//!
//! The seed determines everything: nothing reads the real clock or depends on threads, so a failure
//! can be reproduced from its seed.

mod acts;
mod calls;
mod ending;
mod host;
mod pause;
pub(crate) mod random;
mod rules;
mod schedule;
mod server;
mod stores;
mod watch;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signalbox_domain::ports::{Clock as _, Org, Stores};
use signalbox_domain::queue::{ChangeSource, QueueState, RequestedState, SettingsPatch};
use signalbox_services::QueueChange;
use thiserror::Error;

use pause::block_on;
use schedule::Schedule;
use world::World;

/// The most ticks that a queue may take to settle after the faults have stopped.
const PATIENCE: u32 = 60_000;
/// The number of trace lines that a failure shows.
const TAIL: usize = 60;

/// The result of a successful simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// All events, in order; the same for the same seed.
    pub trace: Vec<String>,
    /// The number of committed steps.
    pub commits: usize,
    /// The number of landed pull requests.
    pub landed: usize,
}

/// A failed simulation.
#[derive(Clone, Debug, Error)]
#[error("seed {seed}: {}\nthe end of the trace:\n{}", .complaints.join("\n"), tail(.trace))]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// The violated properties.
    pub complaints: Vec<String>,
    /// All events, in order.
    pub trace: Vec<String>,
}

fn tail(trace: &[String]) -> String {
    trace[trace.len().saturating_sub(TAIL)..].join("\n")
}

/// Runs the simulation of a seed on empty stores.
pub fn simulate(seed: u64, stores: Stores) -> Result<Report, Failure> {
    let schedule = Schedule::new(seed);
    let ran = catch_unwind(AssertUnwindSafe(|| {
        let mut world = World::new(seed, stores, &schedule);
        world.run();
        let report = Report {
            trace: Vec::new(),
            commits: world.watch.commits(),
            landed: world.host.witnessed().landed.len(),
        };
        (world.complaints(), report)
    }));
    let (trace, under_way) = (schedule.trace(), schedule.under_way());
    schedule.end();
    match ran {
        Ok((complaints, report)) if complaints.is_empty() => Ok(Report { trace, ..report }),
        Ok((mut complaints, _)) => {
            complaints.extend(under_way.into_iter().map(|it| format!("  {it}")));
            Err(Failure { seed, complaints, trace })
        }
        Err(panic) => {
            let words = panic.downcast_ref::<String>().cloned();
            let words = words.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            let complaints = vec![format!("panic: {}", words.unwrap_or_default())];
            Err(Failure { seed, complaints, trace })
        }
    }
}

impl World {
    fn run(&mut self) {
        self.begin();
        for _ in 0..self.temper.acts {
            self.act();
            // Often many things happen at the same time, and sometimes nothing for long.
            let moments = self.draw(|random| match random.below(10) {
                0..5 => random.below(20),
                5..9 => random.below(150),
                _ => random.below(600),
            });
            self.run_ticks(moments);
            if !self.schedule.violations().is_empty() {
                return;
            }
        }
        self.come_right();
    }

    /// Creates the queue, and opens some pull requests.
    fn begin(&mut self) {
        self.start_server();
        let org = Org {
            id: self.caller.org,
            slug: self.caller.org_slug.clone(),
            created_at: self.schedule.clock.now(),
        };
        block_on(self.stores.account.orgs.create(&org)).expect("the first organization");
        let (mode, settings) = (self.temper.mode, self.some_settings(500));
        let (caller, repo, main) = (self.caller.clone(), self.repo.clone(), self.main.clone());
        self.ask("create the queue".to_owned(), |queues| async move {
            let (concurrency, source) = (settings.concurrency, ChangeSource::Direct);
            queues.create_queue(&caller, &repo, &main, mode, concurrency, source).await?;
            let change = QueueChange { settings, ..QueueChange::default() };
            queues.update_queue(&caller, &repo, &main, change).await.map(drop)
        });
        for _ in 0..PATIENCE {
            if self.watch.commits() > 0 {
                break;
            }
            self.run_ticks(1);
        }
        for _ in 0..self.draw(|random| random.between(2, 6)) {
            drop(self.open());
        }
    }

    /// Runs tasks for this many ticks.
    fn run_ticks(&self, moments: u32) {
        for _ in 0..moments {
            if !self.schedule.tick() {
                self.schedule.jump();
            }
        }
    }

    /// Stops all faults, resumes the queue, and waits until it has settled.
    fn come_right(&mut self) {
        self.host.inner.set_down(false);
        self.host.inner.forget_failures();
        self.schedule.note("all is calm");
        self.schedule.calm_down();
        if self.servers.is_empty() {
            self.start_server();
        }
        self.settle();
        // Read the host's present state again, and sweep orphaned branches.
        let sweeping = Arc::new(AtomicUsize::new(self.servers.len()));
        for server in &self.servers {
            let (sweeper, schedule) = (server.sweeper.clone(), self.schedule.clone());
            let sweeping = sweeping.clone();
            self.schedule.spawn(server.id, "the last sweep", async move {
                drop(sweeper.look_at_all().await);
                drop(sweeper.stray_branches().await);
                // Orphaned branches are deleted when they have not moved for a while.
                schedule.sleep(signalbox_domain::time::Span::minutes(20)).await;
                drop(sweeper.stray_branches().await);
                sweeping.fetch_sub(1, Ordering::SeqCst);
            });
        }
        for _ in 0..PATIENCE {
            if sweeping.load(Ordering::SeqCst) == 0 {
                break;
            }
            self.run_ticks(100);
        }
        self.settle();
    }

    /// Resumes the queue, also if an older call has paused it meanwhile.
    fn let_run(&self) {
        match self.watch.queue().header.state {
            QueueState::Paused { .. } | QueueState::Draining => {
                self.update(SettingsPatch::default(), Some(RequestedState::Running));
            }
            QueueState::Running | QueueState::SwitchingModes { .. } => {}
        }
    }

    fn settle(&self) {
        for _ in 0..PATIENCE {
            if !self.schedule.tick() {
                if self.is_settled() {
                    return;
                }
                self.let_run();
                self.schedule.jump();
            }
            if !self.schedule.violations().is_empty() {
                return;
            }
        }
    }
}
