//! The turns of steps: one step of a queue at a time. Steps that wait for their turn are executed
//! together.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use async_lock::RwLockWriteGuardArc;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use signalbox_domain::ports::QueueRef;

/// The most that the steps of a group weigh together, unless it is a single one.
const MOST: usize = 64;
/// The number of queues from which those without a waiting step are removed.
const QUEUES: usize = 4_096;

/// How much of a group a step takes up.
pub(super) trait Weigh {
    /// 1 for a step that writes little.
    fn weight(&self) -> usize;
}

/// Queues with their waiting steps, each with a result.
pub(super) struct Turns<S, R> {
    queues: Mutex<BTreeMap<QueueRef, Arc<Turn<S, R>>>>,
}

struct Turn<S, R> {
    /// Held while steps are executed.
    lock: async_lock::Mutex<()>,
    /// Held for writing while they are committed.
    commit: Arc<async_lock::RwLock<()>>,
    /// The group that waits; it exists as long as one of its callers waits.
    next: Mutex<Weak<Group<S, R>>>,
}

/// Steps that are executed together.
struct Group<S, R> {
    steps: Steps<S>,
    /// Locked by the caller that drives the execution. When that one disconnects, the next one continues.
    execution: async_lock::Mutex<Execution<R>>,
}

enum Execution<R> {
    Running(BoxFuture<'static, Results<R>>),
    Ended(Results<R>),
}

/// Waiting steps, each with a handle that shows whether its caller still waits.
type Steps<S> = Arc<Mutex<Vec<(Weak<()>, S)>>>;
/// The results by number of the step.
type Results<R> = BTreeMap<usize, R>;

impl<S, R> Default for Turns<S, R> {
    fn default() -> Self {
        Self { queues: Mutex::new(BTreeMap::new()) }
    }
}

impl<S: Weigh + Send + 'static, R: Send + 'static> Turns<S, R> {
    /// Executes a step when it is its turn, with others of the same queue that wait as well. `execute`
    /// returns one result for each step, and must not panic. `None` if it returned too few.
    ///
    /// Every caller can drive the execution, so it completes even if others disconnect, and never starts if
    /// all of them do.
    pub(super) async fn take<E, F>(&self, queue: QueueRef, step: S, execute: E) -> Option<R>
    where
        E: FnOnce(Vec<S>) -> F + Send + 'static,
        F: Future<Output = Vec<R>> + Send,
    {
        let (caller, turn) = (Arc::new(()), self.turn(queue));
        let (number, group) = turn.join((Arc::downgrade(&caller), step), execute);
        let mut execution = group.execution.lock().await;
        if let Execution::Running(running) = &mut *execution {
            let results = running.await;
            *execution = Execution::Ended(results);
        }
        drop(caller);
        match &mut *execution {
            Execution::Ended(results) => results.remove(&number),
            Execution::Running(_) => None,
        }
    }

    /// Marks a queue as being committed until the guard is dropped.
    pub(super) async fn committing(&self, queue: QueueRef) -> RwLockWriteGuardArc<()> {
        self.turn(queue).commit.write_arc().await
    }

    /// Waits until a queue is not being committed.
    pub(super) async fn after_commit(&self, queue: QueueRef) {
        drop(self.turn(queue).commit.read_arc().await);
    }

    fn turn(&self, queue: QueueRef) -> Arc<Turn<S, R>> {
        let mut queues = locked(&self.queues);
        if queues.len() >= QUEUES {
            // A guard has the lock of commits.
            let used = |turn: &Arc<Turn<S, R>>| {
                Arc::strong_count(turn) > 1 || Arc::strong_count(&turn.commit) > 1
            };
            queues.retain(|_, turn| used(turn));
        }
        queues.entry(queue).or_default().clone()
    }
}

impl<S, R> Default for Turn<S, R> {
    fn default() -> Self {
        let lock = async_lock::Mutex::new(());
        Self { lock, commit: Arc::default(), next: Mutex::new(Weak::new()) }
    }
}

impl<S: Weigh + Send + 'static, R: Send + 'static> Turn<S, R> {
    /// Adds a step to the waiting group, or to a new one. Returns its number in the group.
    fn join<E, F>(self: &Arc<Self>, step: (Weak<()>, S), execute: E) -> (usize, Arc<Group<S, R>>)
    where
        E: FnOnce(Vec<S>) -> F + Send + 'static,
        F: Future<Output = Vec<R>> + Send,
    {
        let mut next = locked(&self.next);
        if let Some(group) = next.upgrade() {
            let mut steps = locked(&group.steps);
            let weight: usize = steps.iter().map(|(_, step)| step.weight()).sum();
            if weight.saturating_add(step.1.weight()) <= MOST {
                steps.push(step);
                let number = steps.len() - 1;
                drop(steps);
                return (number, group);
            }
        }
        let steps: Steps<S> = Arc::new(Mutex::new(vec![step]));
        let (turn, waiting) = (self.clone(), steps.clone());
        let running = async move {
            let _turn = turn.lock.lock().await;
            let (numbers, steps): (Vec<usize>, Vec<S>) = turn.begin(&waiting).into_iter().unzip();
            numbers.into_iter().zip(execute(steps).await).collect()
        };
        let execution = async_lock::Mutex::new(Execution::Running(running.boxed()));
        let group = Arc::new(Group { steps, execution });
        *next = Arc::downgrade(&group);
        (0, group)
    }

    /// Closes a group. Returns the steps whose callers still wait, with their numbers.
    fn begin(&self, steps: &Steps<S>) -> Vec<(usize, S)> {
        let mut next = locked(&self.next);
        if next.upgrade().is_some_and(|group| Arc::ptr_eq(&group.steps, steps)) {
            *next = Weak::new();
        }
        let steps = std::mem::take(&mut *locked(steps));
        let steps = steps.into_iter().enumerate();
        let waits = |(number, (caller, step)): (usize, (Weak<()>, S))| {
            caller.upgrade().map(|_| (number, step))
        };
        steps.filter_map(waits).collect()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use async_lock::Semaphore;
    use futures_util::future::poll_immediate;
    use signalbox_domain::ids::{OrgId, QueueId};
    use uuid::Uuid;

    use super::*;

    fn queue(number: u128) -> QueueRef {
        QueueRef { org: OrgId(Uuid::nil()), id: QueueId(Uuid::from_u128(number)) }
    }

    /// Numbers from 1,000 weigh as much as a group may.
    impl Weigh for u32 {
        fn weight(&self) -> usize {
            if *self < 1_000 { 1 } else { MOST }
        }
    }

    /// Turns whose steps are numbers, and the groups that were executed.
    #[derive(Clone)]
    struct Bench {
        turns: Arc<Turns<u32, u32>>,
        groups: Arc<Mutex<Vec<Vec<u32>>>>,
        /// An execution ends when it gets a permit.
        permits: Arc<Semaphore>,
    }

    impl Bench {
        fn new(permits: usize) -> Self {
            let permits = Arc::new(Semaphore::new(permits));
            Self { turns: Arc::default(), groups: Arc::default(), permits }
        }

        /// A step with that number; its result is ten times as much.
        fn step(&self, number: u32) -> BoxFuture<'static, Option<u32>> {
            let Self { turns, groups, permits } = self.clone();
            let execute = |steps: Vec<u32>| async move {
                locked(&groups).push(steps.clone());
                permits.acquire().await.forget();
                steps.into_iter().map(|step| step * 10).collect()
            };
            async move { turns.take(queue(1), number, execute).await }.boxed()
        }

        fn groups(&self) -> Vec<Vec<u32>> {
            locked(&self.groups).clone()
        }
    }

    /// Polls a step once; it must not end.
    async fn begins(step: &mut BoxFuture<'static, Option<u32>>) {
        assert_eq!(poll_immediate(step).await, None);
    }

    #[tokio::test]
    async fn steps_that_wait_are_executed_together_in_order() {
        let bench = Bench::new(0);
        let mut steps: Vec<_> = (0..5).map(|number| bench.step(number)).collect();
        for step in &mut steps {
            begins(step).await;
        }
        assert_eq!(bench.groups(), [vec![0]], "the others wait");
        bench.permits.add_permits(2);
        let results = futures_util::future::join_all(steps).await;
        assert_eq!(results, [0, 10, 20, 30, 40].map(Some));
        assert_eq!(bench.groups(), [vec![0], vec![1, 2, 3, 4]]);
    }

    #[tokio::test]
    async fn a_group_has_a_limit() {
        let bench = Bench::new(0);
        let mut steps: Vec<_> = (0..200).map(|number| bench.step(number)).collect();
        for step in &mut steps {
            begins(step).await;
        }
        bench.permits.add_permits(5);
        let results = futures_util::future::join_all(steps).await;
        let expected: Vec<_> = (0..200).map(|number| Some(number * 10)).collect();
        assert_eq!(results, expected);
        let sizes: Vec<usize> = bench.groups().iter().map(Vec::len).collect();
        assert_eq!(sizes, [1, MOST, MOST, MOST, 200 - 1 - 3 * MOST]);
    }

    #[tokio::test]
    async fn a_heavy_step_is_executed_alone_in_its_order() {
        let bench = Bench::new(0);
        let mut steps: Vec<_> = [0, 1, 2, 1_000, 3, 4].map(|number| bench.step(number)).into();
        for step in &mut steps {
            begins(step).await;
        }
        bench.permits.add_permits(4);
        let results = futures_util::future::join_all(steps).await;
        assert_eq!(results, [0, 10, 20, 10_000, 30, 40].map(Some));
        assert_eq!(bench.groups(), [vec![0], vec![1, 2], vec![1_000], vec![3, 4]]);
    }

    #[tokio::test]
    async fn a_caller_that_disconnects_stops_no_other() {
        let bench = Bench::new(0);
        let mut steps: Vec<_> = (0..4).map(|number| bench.step(number)).collect();
        for step in &mut steps {
            begins(step).await;
        }
        let [first, second, third, fourth] = <[_; 4]>::try_from(steps).ok().expect("four");
        // While it is executed, and before it is: the first of its group, which was polled last.
        drop(first);
        drop(second);
        bench.permits.add_permits(2);
        assert_eq!(third.await, Some(20));
        assert_eq!(fourth.await, Some(30));
        assert_eq!(bench.groups(), [vec![0], vec![2, 3]]);
    }

    #[tokio::test]
    async fn an_execution_continues_when_the_caller_that_began_it_disconnects() {
        let bench = Bench::new(0);
        let mut steps: Vec<_> = (0..3).map(|number| bench.step(number)).collect();
        for step in &mut steps {
            begins(step).await;
        }
        let [first, mut second, mut third] = <[_; 3]>::try_from(steps).ok().expect("three");
        bench.permits.add_permits(1);
        assert_eq!(first.await, Some(0));
        begins(&mut second).await;
        begins(&mut third).await;
        assert_eq!(bench.groups(), [vec![0], vec![1, 2]]);
        drop(second);
        bench.permits.add_permits(1);
        assert_eq!(third.await, Some(20));
        assert_eq!(bench.groups().len(), 2, "it was not begun again");
    }

    #[tokio::test]
    async fn nothing_is_executed_if_all_callers_have_disconnected() {
        let bench = Bench::new(0);
        let mut steps: Vec<_> = (0..3).map(|number| bench.step(number)).collect();
        for step in &mut steps {
            begins(step).await;
        }
        drop(steps);
        bench.permits.add_permits(1);
        assert_eq!(bench.step(7).await, Some(70));
        assert_eq!(bench.groups(), [vec![0], vec![7]]);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn no_caller_is_forgotten_when_others_disconnect() {
        let turns: Arc<Turns<u32, u32>> = Arc::default();
        let step = |number: u32, patience: Option<usize>| {
            let turns = turns.clone();
            tokio::spawn(async move {
                let execute = |steps: Vec<u32>| async move {
                    // Woken by another thread, often while a caller polls.
                    for _ in 0..3 {
                        tokio::spawn(tokio::task::yield_now()).await.expect("a task");
                    }
                    steps
                };
                let mut step = turns.take(queue(1), number, execute).boxed();
                let Some(polls) = patience else {
                    let limit = std::time::Duration::from_mins(1);
                    return tokio::time::timeout(limit, step).await.expect("it is woken");
                };
                for _ in 0..polls {
                    if let Some(result) = poll_immediate(&mut step).await {
                        return result;
                    }
                    tokio::task::yield_now().await;
                }
                None
            })
        };
        for round in 0..2_000 {
            let steps: Vec<_> = (0..8)
                .map(|number| (number, step(number, (number % 2 == 0).then_some(round % 7))))
                .collect();
            for (number, step) in steps {
                let result = step.await.expect("a task");
                assert!(number % 2 == 0 || result == Some(number), "{number} in round {round}");
            }
        }
    }

    #[tokio::test]
    async fn a_commit_is_waited_for() {
        let turns: Turns<u32, u32> = Turns::default();
        let commit = turns.committing(queue(1)).await;
        let mut waits = turns.after_commit(queue(1)).boxed();
        assert!(poll_immediate(&mut waits).await.is_none());
        assert!(turns.after_commit(queue(2)).now_or_never().is_some(), "of another queue");
        drop(commit);
        waits.await;
    }

    #[tokio::test]
    async fn queues_do_not_wait_for_each_other() {
        let turns: Turns<u32, u32> = Turns::default();
        let mut held = turns.take(queue(1), 1, |_| pending::<Vec<u32>>()).boxed();
        assert_eq!(poll_immediate(&mut held).await, None);
        assert_eq!(turns.take(queue(2), 5, ready).await, Some(5));
        assert_eq!(turns.take(queue(3), 5, |_| ready(Vec::new())).await, None, "without a result");
    }
}
