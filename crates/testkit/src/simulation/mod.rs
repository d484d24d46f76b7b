//! The whole system under everything at once, as one seed determines it.
//!
//! The real services run on the real ports. Around them is a world in which callers, authors and
//! visitors do what they like, hosts and databases fail or answer late, servers die anywhere
//! between two calls, and time is whatever the clock is set to. After every commit and after every
//! landing the invariants are checked; at the end faults stop, and everything must come right.
//!
//! A seed determines all of it: nothing looks at the real time, nothing is left to threads, so a
//! failure can be had again from the number alone.

mod acts;
mod calls;
mod ending;
mod host;
mod pause;
mod random;
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
use signalbox_domain::queue::{QueueState, RequestedState, SettingsPatch};
use thiserror::Error;

use pause::at_once;
use schedule::Schedule;
use world::World;

/// The most moments that a queue may take to settle once all is calm.
const PATIENCE: u32 = 60_000;
/// How many lines of the trace a failure shows.
const TAIL: usize = 60;

/// A simulation that went well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Everything that happened, in order. The same for the same seed.
    pub trace: Vec<String>,
    /// How many steps of the queue were committed.
    pub commits: usize,
    /// How many pull requests the queue landed.
    pub landed: usize,
}

/// A simulation that found something.
#[derive(Clone, Debug, Error)]
#[error("seed {seed}: {}\nthe end of the trace:\n{}", .complaints.join("\n"), tail(.trace))]
pub struct Failure {
    /// Which seed to run again.
    pub seed: u64,
    /// What does not hold.
    pub complaints: Vec<String>,
    /// Everything that happened, in order.
    pub trace: Vec<String>,
}

fn tail(trace: &[String]) -> String {
    trace[trace.len().saturating_sub(TAIL)..].join("\n")
}

/// Runs the simulation of a seed on empty stores that answer at once.
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
            // Often many things happen at once, and sometimes nothing for long.
            let moments = self.draw(|random| match random.below(10) {
                0..5 => random.below(20),
                5..9 => random.below(150),
                _ => random.below(600),
            });
            self.go_on(moments);
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
        at_once(self.stores.account.orgs.create(&org)).expect("the first organization");
        let (mode, settings) = (self.temper.mode, self.some_settings(500));
        let (caller, repo, main) = (self.caller.clone(), self.repo.clone(), self.main.clone());
        self.ask("create the queue".to_owned(), |queues| async move {
            queues.create_queue(&caller, &repo, &main, mode, settings.concurrency).await?;
            queues.update_queue(&caller, &repo, &main, settings, None, None).await.map(drop)
        });
        for _ in 0..PATIENCE {
            if self.watch.commits() > 0 {
                break;
            }
            self.go_on(1);
        }
        for _ in 0..self.draw(|random| random.between(2, 6)) {
            drop(self.open());
        }
    }

    /// Lets tasks go on for that many moments.
    fn go_on(&self, moments: u32) {
        for _ in 0..moments {
            if !self.schedule.tick() {
                self.schedule.jump();
            }
        }
    }

    /// Ends all faults, lets the queue run, and waits until it has settled.
    fn come_right(&mut self) {
        self.host.inner.set_down(false);
        self.host.inner.forget_failures();
        self.schedule.note("all is calm");
        self.schedule.calm_down();
        if self.servers.is_empty() {
            self.start_server();
        }
        self.settle();
        // What the host shows now is read once more, and strays are swept.
        let sweeping = Arc::new(AtomicUsize::new(self.servers.len()));
        for server in &self.servers {
            let (sweeper, schedule) = (server.sweeper.clone(), self.schedule.clone());
            let sweeping = sweeping.clone();
            self.schedule.spawn(server.id, "the last sweep", async move {
                drop(sweeper.look_at_all().await);
                drop(sweeper.stray_branches().await);
                // Strays are deleted when they have not moved for a while.
                schedule.sleep(signalbox_domain::time::Span::minutes(20)).await;
                drop(sweeper.stray_branches().await);
                sweeping.fetch_sub(1, Ordering::SeqCst);
            });
        }
        for _ in 0..PATIENCE {
            if sweeping.load(Ordering::SeqCst) == 0 {
                break;
            }
            self.go_on(100);
        }
        self.settle();
    }

    /// Lets the queue run, also when an older call has paused it meanwhile.
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
