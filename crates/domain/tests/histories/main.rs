//! Recorded histories of queues: the inputs and the planner's results, step by step. A change of
//! the planner's behavior shows here as a readable diff; an intended one is recorded with
//! `SIGNALBOX_UPDATE=1`.
//!
//! The inputs are recorded with the results, so that they do not depend on the random histories of
//! the model. `record` draws new ones.

#[path = "../model/ops.rs"]
mod ops;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use signalbox_domain::ids::PrNumber;
use signalbox_domain::queue::{
    Decision, EntryView, Estimates, Header, Input, Move, Queue, RequestedState, Stay, TestRun,
    Transition, WaitReason, absorb, decide, durations, estimate, measure, next_deadline,
    testing_results, timeline, view_entries, view_entry, view_landing, view_queue,
};
use signalbox_domain::testing::World;
use signalbox_domain::time::Timestamp;
use uuid::Uuid;

use ops::{Op, apply, op, outcomes, rules, settings};

/// The number of recorded histories.
const HISTORIES: u8 = 40;

/// One line of a file.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    /// The queue as it was created.
    New { queue: Box<Header> },
    /// An input and its result.
    Step { at: Timestamp, input: Box<Input>, gives: String },
    /// A fingerprint of all decisions, events, views and metrics.
    All { fingerprint: String },
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/histories/recorded")
}

/// Replays a history.
struct Replay {
    queue: Queue,
    /// All details; the input of the fingerprint.
    all: String,
    stays: Vec<Stay>,
    moves: Vec<Move>,
    runs: Vec<TestRun>,
}

impl Replay {
    fn of(header: Header) -> Self {
        Self {
            queue: Queue::restore(header, [], []),
            all: String::new(),
            stays: Vec::new(),
            moves: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// Applies one input and describes the result in one line.
    fn step(&mut self, at: Timestamp, input: &Input) -> String {
        let transition = match input {
            Input::Command(command) => match decide(&self.queue, command, at) {
                Ok(transition) => transition,
                Err(refusal) => {
                    let _ = write!(self.all, "{refusal:?} {refusal}");
                    return format!("refused: {refusal}");
                }
            },
            Input::Fact(fact) => absorb(&self.queue, fact, at),
        };
        let gives = said(&transition);
        let number = transition.queue.header.sequence;
        for (ordinal, decision) in (0..).zip(&transition.decisions) {
            self.moves.extend(Move::of(number, ordinal, at, decision));
            self.stays.extend(Stay::of(at, decision));
        }
        self.runs.extend(transition.queue.runs().cloned());
        self.look(at, &transition);
        self.queue = transition.queue;
        gives
    }

    /// Appends all details of a step.
    fn look(&mut self, at: Timestamp, transition: &Transition) {
        let Transition { queue, effects, decisions, events, shown, .. } = transition;
        let classes: Vec<_> =
            effects.iter().map(|it| (it.effect.name(), it.effect.run())).collect();
        let _ = write!(self.all, "{decisions:?}{effects:?}{classes:?}{events:?}{shown:?}");
        let _ = write!(self.all, "{:?}{:?}", transition.is_empty(), next_deadline(queue));
        let _ = write!(self.all, "{:?}{:?}", queue.header, queue.slots_used());
        let history = durations(&self.moves);
        let estimates = Estimates::new(queue, &history, at);
        let view = view_queue(queue);
        let some: Vec<_> = view.entries.iter().skip(1).step_by(2).cloned().collect();
        let unknown = PrNumber(u32::MAX);
        let prs = some.iter().map(|it| it.entry.pr).chain([unknown]).collect();
        assert_eq!(view_entries(queue, &prs), some);
        let lands = |it: &&EntryView<'_>| it.waits == Some(WaitReason::Landing);
        let landing: Vec<_> = view.entries.iter().filter(lands).cloned().collect();
        assert_eq!(view_landing(queue), landing);
        for entry in &view.entries {
            let _ = write!(
                self.all,
                "{entry:?}{:?}",
                view_entry(queue, entry.entry.pr) == Some(entry.clone())
            );
            let single = estimate(queue, entry.entry.pr, &history, at);
            assert_eq!(estimates.of(entry), single);
            let _ = write!(self.all, "{single:?}");
        }
    }

    /// Appends the final history, results and metrics, and returns the fingerprint.
    fn fingerprint(mut self) -> String {
        let ends: Vec<Move> = self.moves.iter().filter(|it| it.from.is_some()).cloned().collect();
        let results = testing_results(&ends, &self.moves);
        let counts: Vec<_> =
            self.queue.entries_in_order().map(|it| (it.state.name(), false, 1)).collect();
        let metrics = measure("acme/calc", "main", &counts, &self.stays);
        let _ = write!(self.all, "{results:?}{metrics:?}");
        for entry in self.queue.entries_in_order() {
            let of_it = self.moves.iter().rev().filter(|it| it.entry == entry.id);
            let moves: Vec<Move> = of_it.cloned().collect();
            let waits = view_entry(&self.queue, entry.pr).and_then(|it| it.waits.clone());
            let _ = write!(self.all, "{:?}", timeline(entry, waits.as_ref(), &moves, &self.runs));
        }
        Uuid::new_v5(&Uuid::NAMESPACE_OID, self.all.as_bytes()).simple().to_string()
    }
}

/// Describes a transition in one line: moves, effects and wait reasons.
fn said(transition: &Transition) -> String {
    let mut parts = Vec::new();
    for decision in &transition.decisions {
        parts.push(match decision {
            Decision::Moved(moved) => {
                format!("#{} {} ({})", moved.pr, moved.to.as_str(), moved.reason.as_str())
            }
            other => {
                let words = format!("{other:?}");
                words.chars().take_while(char::is_ascii_alphanumeric).collect()
            }
        });
    }
    parts.extend(transition.effects.iter().map(|it| it.effect.name().to_owned()));
    let waits = view_queue(&transition.queue).entries.into_iter().map(|it| {
        let reason = it.waits.as_ref().map(|reason| format!("{reason:?}")).unwrap_or_default();
        let reason: String = reason.chars().take_while(char::is_ascii_alphanumeric).collect();
        format!("#{} {reason}", it.entry.pr)
    });
    format!("{} | {}", parts.join(", "), waits.collect::<Vec<_>>().join(", "))
}

/// Removes `null` fields, which does not change the parsed value.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, value)| !value.is_null());
            kept.map(|(name, value)| (name, without_nulls(value))).collect()
        }
        Value::Array(values) => values.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

/// Replays a history and returns its lines.
fn replayed(header: Header, inputs: &[(Timestamp, Input)]) -> String {
    let json =
        |line: &Line| without_nulls(serde_json::to_value(line).expect("JSON")).to_string() + "\n";
    let mut text = json(&Line::New { queue: Box::new(header.clone()) });
    let mut replay = Replay::of(header);
    for (at, input) in inputs {
        let gives = replay.step(*at, input);
        text += &json(&Line::Step { at: *at, input: Box::new(input.clone()), gives });
    }
    text + &json(&Line::All { fingerprint: replay.fingerprint() })
}

#[test]
fn recorded_histories_replay_unchanged() {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder())
        .expect("the folder")
        .map(|it| it.expect("an entry").path())
        .filter(|it| it.extension().is_some_and(|it| it == "jsonl"))
        .collect();
    files.sort();
    assert!(files.len() >= usize::from(HISTORIES), "{} histories", files.len());
    for file in files {
        let recorded = std::fs::read_to_string(&file).expect("a text");
        let (mut header, mut inputs) = (None, Vec::new());
        for line in recorded.lines() {
            match serde_json::from_str(line).expect("a line of a history") {
                Line::New { queue } => header = Some(*queue),
                Line::Step { at, input, .. } => inputs.push((at, *input)),
                Line::All { .. } => {}
            }
        }
        let today = replayed(header.expect("a queue"), &inputs);
        if std::env::var_os("SIGNALBOX_UPDATE").is_some() {
            std::fs::write(&file, today).expect("written");
            continue;
        }
        for (number, (was, is)) in (1..).zip(recorded.lines().zip(today.lines())) {
            assert_eq!(is, was, "{}:{number}", file.display());
        }
        assert_eq!(today.lines().count(), recorded.lines().count(), "{}", file.display());
    }
}

/// The features of a history: the parts of its lines without numbers, each with the settings that
/// matter most to the planner.
fn features(header: &Header, inputs: &[(Timestamp, Input)]) -> BTreeSet<String> {
    let mut replay = Replay::of(header.clone());
    let mut found = BTreeSet::new();
    for (at, input) in inputs {
        let gives = replay.step(*at, input);
        let it = &replay.queue.header.settings;
        let settings =
            (it.mode, it.batch, it.can_optimistically_merge, it.pending_failure_depth > 0);
        for part in gives.split([',', '|']) {
            let words: String = part.chars().filter(|it| !it.is_ascii_digit()).collect();
            found.insert(format!("{words} {settings:?}"));
        }
    }
    found
}

#[test]
#[ignore = "draws new histories"]
fn record() {
    let mut drawn = Vec::new();
    for seed in 0..800_u16 {
        let mut bytes = [7; 32];
        bytes[..2].copy_from_slice(&seed.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let mut runner = TestRunner::new_with_rng(Config::default(), rng);
        let ops = prop::collection::vec((op(), 0..4_u8), 20..60);
        let drawn_from = (rules(), settings(), outcomes(), ops);
        let (rules, settings, outcomes, ops) =
            drawn_from.new_tree(&mut runner).expect("drawn").current();
        let mut world = World::new(settings, rules).after(&outcomes);
        let header = world.new_queue.header.clone();
        for (op, steps) in &ops {
            apply(&mut world, op);
            // Most of the time the host answers in order.
            for _ in 0..*steps {
                apply(&mut world, &Op::Run(0, false));
                apply(&mut world, &Op::Tell(0, false));
            }
        }
        apply(&mut world, &Op::HostBack);
        apply(&mut world, &Op::State(RequestedState::Running));
        world.settle();
        let features = features(&header, &world.inputs);
        drawn.push((header, world.inputs, features));
    }
    // Each next history is the one with the most features that the earlier ones lack.
    let mut shown = BTreeSet::new();
    for number in 0..HISTORIES {
        let news = |it: &(Header, Vec<_>, BTreeSet<String>)| it.2.difference(&shown).count();
        let best = (0..drawn.len()).max_by_key(|at| news(&drawn[*at])).expect("one is left");
        let (header, inputs, features) = drawn.swap_remove(best);
        shown.extend(features);
        let text = replayed(header, &inputs);
        std::fs::write(folder().join(format!("{number:02}.jsonl")), text).expect("written");
    }
}
