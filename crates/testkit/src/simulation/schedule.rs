//! The scheduler: time, randomness, and the order of tasks.
//!
//! All work of a server is in tasks. A task pauses before and after every call of a store or a
//! host, and a random task continues. So calls overtake each other, answers arrive late, and a
//! crash can occur between any two calls.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use signalbox_domain::ports::Clock;
use signalbox_domain::queue::EffectClass;
use signalbox_domain::testing::ManualClock;
use signalbox_domain::time::{Span, Timestamp};

use super::pause::{Pause, block_on};
use super::random::Random;

/// The number of a server; a server that is started after a crash has a new one.
pub(super) type ServerId = u32;
type TaskId = u64;
type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Task {
    server: ServerId,
    name: String,
    work: Work,
}

/// The wait of a paused task.
struct Wait {
    until: Timestamp,
    /// A wake-up of this server and effect class ends it early.
    class: Option<(ServerId, EffectClass)>,
}

struct State {
    random: Random,
    /// When the faults stopped.
    calm_since: Option<Timestamp>,
    trace: Vec<String>,
    violations: Vec<String>,
    last_task: TaskId,
    /// The task that is being polled.
    current: (TaskId, ServerId),
    tasks: BTreeMap<TaskId, Task>,
    waits: BTreeMap<TaskId, Wait>,
    /// Tasks that may hold their server's turn. No other task of that server runs meanwhile,
    /// because waiting for the turn's lock reads the real clock.
    in_turn: BTreeMap<ServerId, TaskId>,
}

/// The schedule of one simulation.
pub(super) struct Schedule {
    pub(super) clock: Arc<ManualClock>,
    began: Timestamp,
    state: Mutex<State>,
}

impl Schedule {
    pub(super) fn new(seed: u64) -> Arc<Self> {
        let clock = Arc::new(ManualClock::default());
        let state = State {
            random: Random::new(seed),
            calm_since: None,
            trace: Vec::new(),
            violations: Vec::new(),
            last_task: 0,
            current: (0, 0),
            tasks: BTreeMap::new(),
            waits: BTreeMap::new(),
            in_turn: BTreeMap::new(),
        };
        Arc::new(Self { began: clock.now(), clock, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Draws from the random number generator.
    pub(super) fn draw<T>(&self, draw: impl FnOnce(&mut Random) -> T) -> T {
        draw(&mut self.state().random)
    }

    /// Whether a fault with this probability (per mille) occurs now; never after the faults have
    /// stopped.
    pub(super) fn fault(&self, per_mille: u32) -> bool {
        let mut state = self.state();
        state.calm_since.is_none() && state.random.per_mille(per_mille)
    }

    pub(super) fn is_calm(&self) -> bool {
        self.state().calm_since.is_some()
    }

    /// Whether the faults stopped long enough ago for everything that they delayed.
    pub(super) fn is_calm_for_long(&self) -> bool {
        let now = self.clock.now();
        self.state().calm_since.is_some_and(|since| since.plus(Span::minutes(10)) < now)
    }

    /// Stops all faults: calls answer immediately and nothing fails.
    pub(super) fn calm_down(&self) {
        let now = self.clock.now();
        let mut state = self.state();
        state.calm_since = Some(now);
        for wait in state.waits.values_mut().filter(|wait| wait.class.is_none()) {
            wait.until = wait.until.min(now);
        }
    }

    /// Writes a line into the trace.
    pub(super) fn note(&self, line: impl AsRef<str>) {
        let at = self.clock.now().since(self.began).millis();
        let mut state = self.state();
        let line = format!("{at:>9} {}", line.as_ref());
        state.trace.push(line);
    }

    /// Writes a line about the running task into the trace.
    pub(super) fn note_here(&self, line: impl AsRef<str>) {
        let (task, server) = self.state().current;
        self.note(format!("s{server} t{task} {}", line.as_ref()));
    }

    /// Records the violation of an invariant.
    pub(super) fn violated(&self, what: String) {
        self.note(format!("VIOLATED {what}"));
        self.state().violations.push(what);
    }

    pub(super) fn violations(&self) -> Vec<String> {
        self.state().violations.clone()
    }

    pub(super) fn trace(&self) -> Vec<String> {
        self.state().trace.clone()
    }

    /// Adds a task of a server.
    pub(super) fn spawn(
        &self,
        server: ServerId,
        name: impl Into<String>,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let mut state = self.state();
        state.last_task += 1;
        let id = state.last_task;
        state.tasks.insert(id, Task { server, name: name.into(), work: Box::pin(work) });
    }

    /// Drops all tasks, which breaks the reference cycle with the schedule.
    pub(super) fn end(&self) {
        let tasks = std::mem::take(&mut self.state().tasks);
        drop(tasks);
    }

    /// Drops a server's tasks at their present pauses.
    pub(super) fn kill(&self, server: ServerId) {
        let killed: Vec<Task> = {
            let mut state = self.state();
            let ids: Vec<TaskId> = state
                .tasks
                .iter()
                .filter(|(_, task)| task.server == server)
                .map(|(id, _)| *id)
                .collect();
            state.in_turn.remove(&server);
            for id in &ids {
                state.waits.remove(id);
            }
            ids.iter().filter_map(|id| state.tasks.remove(id)).collect()
        };
        // Outside the lock: dropping a task may access the schedule.
        drop(killed);
    }

    /// Runs one random task for one tick; `false` if all tasks wait for a later time.
    pub(super) fn tick(&self) -> bool {
        let pause = i64::from(self.draw(|random| random.between(1, 20_000)));
        self.clock.advance(micros(pause));
        let Some((id, mut task)) = self.take_ready() else { return false };
        let ended = block_on(poll_fn(|context| match task.work.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(true),
            // Paused by the schedule; otherwise it waits for the store itself.
            Poll::Pending if self.state().waits.contains_key(&id) => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }));
        let mut state = self.state();
        state.current = (0, 0);
        if ended {
            state.waits.remove(&id);
            let server = task.server;
            if state.in_turn.get(&server) == Some(&id) {
                state.in_turn.remove(&server);
            }
            drop(state);
            drop(task);
        } else {
            state.tasks.insert(id, task);
        }
        true
    }

    fn take_ready(&self) -> Option<(TaskId, Task)> {
        let now = self.clock.now();
        let mut state = self.state();
        let ready: Vec<TaskId> = state
            .tasks
            .iter()
            .filter(|(id, task)| {
                let due = state.waits.get(id).is_none_or(|wait| wait.until <= now);
                due && state.in_turn.get(&task.server).is_none_or(|holder| holder == *id)
            })
            .map(|(id, _)| *id)
            .collect();
        let id = *state.random.pick(&ready)?;
        let task = state.tasks.remove(&id)?;
        state.current = (id, task.server);
        Some((id, task))
    }

    /// Advances the clock to the next time that a task waits for.
    pub(super) fn jump(&self) {
        let now = self.clock.now();
        let next = self.state().waits.values().map(|wait| wait.until).filter(|it| *it > now).min();
        if let Some(next) = next {
            self.clock.advance(next.since(now));
        }
    }

    /// Pauses a task before or after a call, mostly briefly, sometimes for long. `in_turn`: the
    /// task may hold its server's turn.
    pub(super) fn pause(self: &Arc<Self>, in_turn: bool) -> Pause {
        let mut state = self.state();
        let drawn = if state.calm_since.is_some() { 0 } else { state.random.below(1_000) };
        let millis = match drawn {
            0..850 => 0,
            850..985 => state.random.between(1, 2_000),
            _ => state.random.between(5_000, 60_000),
        };
        drop(state);
        let until = self.clock.now().plus(micros(i64::from(millis) * 1_000));
        Pause { schedule: self.clone(), until, class: None, in_turn, begun: false }
    }

    /// Pauses a task for a span.
    pub(super) fn sleep(self: &Arc<Self>, span: Span) -> Pause {
        let until = self.clock.now().plus(span);
        Pause { schedule: self.clone(), until, class: None, in_turn: false, begun: false }
    }

    /// Pauses a task until the span has passed or its effect class is woken.
    pub(super) fn idle(
        self: &Arc<Self>,
        server: ServerId,
        class: EffectClass,
        span: Span,
    ) -> Pause {
        Pause { class: Some((server, class)), ..self.sleep(span) }
    }

    /// Records that the running task paused.
    pub(super) fn stopped(
        &self,
        until: Timestamp,
        class: Option<(ServerId, EffectClass)>,
        in_turn: bool,
    ) {
        let mut state = self.state();
        let (task, server) = state.current;
        state.waits.insert(task, Wait { until, class });
        if in_turn {
            state.in_turn.insert(server, task);
        }
    }

    /// Records that the running task continues.
    pub(super) fn resumed(&self) {
        let mut state = self.state();
        let (task, server) = state.current;
        state.waits.remove(&task);
        state.in_turn.remove(&server);
    }

    /// Wakes the tasks of a server and effect class.
    pub(super) fn wake(&self, server: ServerId, class: EffectClass) {
        let now = self.clock.now();
        for wait in self.state().waits.values_mut() {
            if wait.class == Some((server, class)) {
                wait.until = wait.until.min(now);
            }
        }
    }

    /// The unfinished tasks, for the message of a failure.
    pub(super) fn under_way(&self) -> Vec<String> {
        let state = self.state();
        state.tasks.iter().map(|(id, it)| format!("s{} t{id} {}", it.server, it.name)).collect()
    }
}

fn micros(micros: i64) -> Span {
    let zero = Timestamp::from_unix_micros(0);
    Timestamp::from_unix_micros(micros).since(zero)
}
