//! Payloads of random queue histories match their schemas.

use std::collections::{BTreeMap, BTreeSet};

use jsonschema::Validator;
use proptest::prelude::*;
use serde_json::Value;
use signalbox_domain::flaky;
use signalbox_domain::ids::{BranchName, PrNumber, RepoName};
use signalbox_domain::ports::{EventCatalog as _, EventWriter, QueuePlace};
use signalbox_domain::queue::{
    ChangeSource, Command, Event, EventKind, Mode, RequestedState, Settings, SettingsPatch, Subject,
};
use signalbox_domain::testing::{Rules, World};
use signalbox_domain::time::Span;
use signalbox_webhooks::{EventPayloads, KnownEvents, catalog};

/// Checks payloads against the schemas of their names.
struct Schemas(BTreeMap<&'static str, Validator>);

impl Schemas {
    fn new() -> Self {
        let validator = |event: &catalog::EventType| {
            let options = jsonschema::options().should_validate_formats(true);
            (event.name, options.build(&event.schema()).expect("a valid schema"))
        };
        Self(catalog::all().map(validator).collect())
    }

    fn check(&self, payload: &Value) {
        let name = payload["type"].as_str().expect("a name");
        let validator = self.0.get(name).unwrap_or_else(|| panic!("{name} is not in the catalog"));
        let errors: Vec<String> = validator.iter_errors(payload).map(|it| it.to_string()).collect();
        assert!(errors.is_empty(), "{payload:#}\n{errors:#?}");
    }
}

/// A world whose events are kept.
struct Story {
    world: World,
    events: Vec<Event>,
}

impl Story {
    fn new(settings: Settings, rules: Rules) -> Self {
        Self { world: World::new(settings, rules), events: Vec::new() }
    }

    fn act(&mut self, act: impl FnOnce(&mut World)) {
        let steps = self.world.journal.len();
        act(&mut self.world);
        assert!(self.world.journal.len() <= steps + 1, "one step at a time");
        if self.world.journal.len() > steps {
            self.events.append(&mut self.world.events);
        }
    }

    /// Runs effects and takes facts in, at most so many.
    fn advance(&mut self, steps: usize) {
        for _ in 0..steps {
            if !self.world.facts.is_empty() {
                let fact = self.world.facts.remove(0);
                self.act(|world| world.take_in(&fact));
            } else if !self.world.outbox.is_empty() {
                let effect = self.world.outbox.remove(0);
                self.world.run(&effect.effect);
            } else {
                return;
            }
            self.world.wait(Span::seconds(1));
        }
    }

    /// The payloads, each checked against its schema.
    fn told(&self, schemas: &Schemas) -> Vec<Value> {
        let place = QueuePlace {
            repo: RepoName::parse("git.local/acme/calc").expect("a name"),
            branch: BranchName::new("main").expect("a branch"),
        };
        let writer = EventPayloads::default();
        let payload = |event: &Event| -> Value {
            let payload = serde_json::from_str(&writer.queue_event(&place, event)).expect("JSON");
            schemas.check(&payload);
            payload
        };
        self.events.iter().map(payload).collect()
    }
}

fn batching(size: u32, concurrency: u32) -> Settings {
    let patch = SettingsPatch {
        batch: Some(true),
        batching_min_size: Some(size),
        batching_max_wait_time_minutes: Some(1),
        ..SettingsPatch::default()
    };
    patch
        .applied_to(&Settings::new(Mode::Single, concurrency).expect("valid settings"))
        .expect("valid settings")
}

fn of_kind<'a>(told: &'a [Value], kind: &str) -> Vec<&'a Value> {
    told.iter().filter(|it| it["type"] == kind).collect()
}

#[test]
fn every_event_has_a_schema_and_every_schema_an_event() {
    let of_queues = EventKind::ALL.iter().map(|kind| kind.as_str());
    let told: BTreeSet<&str> = of_queues.chain(flaky::EventKind::NAMES).collect();
    let listed: BTreeSet<&str> = catalog::all().map(|event| event.name).collect();
    let never: BTreeSet<&str> = catalog::NEVER_CAUSED.iter().copied().collect();
    assert!(told.is_disjoint(&never));
    assert_eq!(&told | &never, listed);
    for event in catalog::all() {
        assert!(jsonschema::meta::is_valid(&event.schema()), "{}", event.name);
        assert!(catalog::page().contains(&format!("## `{}`", event.name)));
    }
}

#[test]
fn the_example_of_an_event_is_valid() {
    let schemas = Schemas::new();
    for kind in KnownEvents.kinds() {
        let example = KnownEvents.example(&kind).expect("an example");
        schemas.check(&serde_json::from_str(&example).expect("JSON"));
    }
}

/// Adds the fields with the names of words that have no list of values.
fn check(at: &str, schema: &Value, names: &[&str], free: &[&str], wrong: &mut Vec<String>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let at = format!("{at}.{name}");
        let is_word = names.iter().any(|it| name.ends_with(it)) && !free.contains(&name.as_str());
        let is_text = field["type"] == "string" && field.get("format").is_none();
        if is_word && is_text && field.get("enum").is_none() && field.get("const").is_none() {
            wrong.push(at.clone());
        }
        check(&at, field, names, free, wrong);
        check(&at, &field["items"], names, free, wrong);
    }
}

/// A field whose values the server knows has them in its schema, so that an example has one of them.
#[test]
fn words_are_listed() {
    let names = ["status", "type", "action", "reason", "setting", "kind", "cause", "method"];
    // Sentences, and texts of a service that Signalbox does not have.
    let free = ["reason", "fact_type", "status_reason", "not_checked_because"];
    let mut wrong = Vec::new();
    for event in catalog::all() {
        check(event.name, &event.schema(), &names, &free, &mut wrong);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn an_endpoint_without_a_list_receives_the_events_of_the_public_api() {
    let known: BTreeSet<&str> = catalog::all().map(|event| event.name).collect();
    let default = BTreeSet::from(catalog::OF_THE_PUBLIC_API);
    assert!(default.is_subset(&known) && default.len() == 19);
    for ours in ["queue.state_changed", "test_case.renamed", "pull_request.removed_from_target"] {
        assert!(known.contains(ours) && !default.contains(ours), "{ours}");
    }
}

#[test]
fn an_event_of_a_batch_always_has_the_candidate() {
    let of_batches = catalog::all().filter(|event| event.name.starts_with("pull_request_batch."));
    for event in of_batches {
        let schema = event.schema();
        let required = schema["required"].as_array().expect("required fields");
        for field in ["test_branch", "test_branch_sha"] {
            assert!(required.contains(&field.into()), "{}: {field}", event.name);
            assert_eq!(schema["properties"][field]["type"], "string", "{}", event.name);
        }
    }
}

#[test]
fn a_batch_has_events_from_candidate_to_merge() {
    let mut story = Story::new(batching(3, 1), Rules::default());
    for pr in 1..=3 {
        story.act(|world| world.submit(pr, None).expect("not refused"));
    }
    story.advance(1_000);
    let told = story.told(&Schemas::new());
    for kind in ["submitted", "testing", "merged"] {
        let events = of_kind(&told, &format!("pull_request_batch.{kind}"));
        assert_eq!(events.len(), 1, "{kind}: {told:#?}");
        assert_eq!(events[0]["pr_numbers"], serde_json::json!([1, 2, 3]));
        assert_eq!(events[0]["pr_numbers_in_batch"], serde_json::json!([1, 2, 3]));
        assert_eq!(events[0]["status"], kind);
    }
    let merged = &of_kind(&told, "pull_request_batch.merged")[0];
    assert_eq!(merged["merged_reason"], "MERGE_GRAPH_MERGE");
    assert_eq!(of_kind(&told, "pull_request.merged").len(), 3);
    let testing = of_kind(&told, "pull_request_batch.testing")[0];
    assert_eq!(testing["is_bisection"], false);
    let submitted = of_kind(&told, "pull_request_batch.submitted")[0];
    assert_eq!(submitted["submitted_reason"], "API_REQUESTED");
}

#[test]
fn a_bad_batch_is_held_and_goes_back_to_be_split() {
    let rules = Rules { bad: BTreeSet::from([2]), ..Rules::default() };
    let mut story = Story::new(batching(4, 2), rules);
    for pr in 1..=4 {
        story.act(|world| world.submit(pr, None).expect("not refused"));
    }
    story.advance(1_000);
    let told = story.told(&Schemas::new());
    let held = of_kind(&told, "pull_request_batch.pending_failure");
    assert_eq!(held[0]["failure_reason"], "TEST_RUN_REQUIRED_STATUS_FAILED");
    assert_eq!(held[0]["pr_numbers"], serde_json::json!([1, 2, 3, 4]));
    let queued = of_kind(&told, "pull_request_batch.queued");
    assert_eq!(queued[0]["queued_reason"], "BISECTION_REQUIRED");
    let halves = of_kind(&told, "pull_request_batch.testing");
    assert!(halves.iter().any(|it| it["is_bisection"] == true), "{told:#?}");
    assert_eq!(of_kind(&told, "pull_request.failed")[0]["pr_number"], 2);
    assert_eq!(of_kind(&told, "pull_request.merged").len(), 3);
}

#[test]
fn a_member_that_leaves_a_batch_has_its_own_events() {
    let mut story = Story::new(batching(3, 1), Rules::default());
    for pr in 1..=3 {
        story.act(|world| world.submit(pr, None).expect("not refused"));
    }
    let testing =
        |story: &Story| story.events.iter().any(|event| event.kind == EventKind::BatchTesting);
    for _ in 0..100 {
        if !testing(&story) {
            story.advance(1);
        }
    }
    assert!(testing(&story));
    let by = story.world.caller();
    let cancel = Command::Cancel { pr: PrNumber(2), by };
    story.act(|world| world.ask(cancel).expect("not refused"));
    let told = story.told(&Schemas::new());
    let canceled = of_kind(&told, "pull_request_batch.canceled");
    assert_eq!(canceled.len(), 1);
    assert_eq!(canceled[0]["pr_numbers"], serde_json::json!([2]));
    assert_eq!(canceled[0]["pr_numbers_in_batch"], serde_json::json!([1, 2, 3]));
    assert_eq!(canceled[0]["cancellation_reason"], "USER_REQUESTED");
    let queued = of_kind(&told, "pull_request_batch.queued");
    assert_eq!(queued.len(), 1);
    assert_eq!(queued[0]["pr_numbers"], serde_json::json!([1, 3]));
    assert_eq!(queued[0]["queued_reason"], "PREREQUISITE_MERGE_ITEM_CANCELLED");
}

#[test]
fn a_queue_emits_events_for_its_state_and_settings() {
    let mut story =
        Story::new(Settings::new(Mode::Single, 1).expect("valid settings"), Rules::default());
    let by = story.world.caller();
    let update = |concurrency, state, reason: Option<&str>| Command::Update {
        settings: Box::new(SettingsPatch { concurrency, ..SettingsPatch::default() }),
        state,
        reason: reason.map(str::to_owned),
        by: by.clone(),
        source: ChangeSource::Direct,
    };
    let pause = update(None, Some(RequestedState::Paused), Some("the release is cut"));
    story.act(|world| world.ask(pause).expect("not refused"));
    story.act(|world| world.ask(update(Some(7), None, None)).expect("not refused"));
    let told = story.told(&Schemas::new());
    assert_eq!(told.len(), 2, "{told:#?}");
    assert_eq!(
        (&told[0]["state"], &told[0]["previous_state"]),
        (&"PAUSED".into(), &"RUNNING".into())
    );
    assert_eq!(told[0]["reason"], "the release is cut");
    assert_eq!(told[1]["type"], "queue.config_changed");
    assert_eq!(told[1]["state"], "PAUSED");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Every payload matches its schema, numbers never repeat, and the members of a batch that
    /// an event is about were tested together.
    #[test]
    fn payloads_match_their_schemas(
        acts in prop::collection::vec((0_u8..12, 1_u32..8), 1..60),
        bad in prop::collection::btree_set(1_u32..8, 0..3),
        size in 1_u32..5,
        concurrency in 1_u32..4,
    ) {
        let schemas = Schemas::new();
        let rules = Rules { bad, flaky: BTreeSet::from([7]), ..Rules::default() };
        let mut story = Story::new(batching(size, concurrency), rules);
        let by = story.world.caller();
        for (act, pr) in acts {
            let number = PrNumber(pr);
            match act {
                0..=3 => story.act(|world| drop(world.submit(pr, None))),
                4 => {
                    let cancel = Command::Cancel { pr: number, by: by.clone() };
                    story.act(|world| drop(world.ask(cancel)));
                }
                5 => {
                    let restart = Command::Restart { pr: number, by: by.clone() };
                    story.act(|world| drop(world.ask(restart)));
                }
                6 => story.world.push(pr),
                7 => story.world.push_target(),
                8 => story.world.merge_by_hand(pr),
                9 => story.world.wait(Span::minutes(2)),
                _ => story.advance(usize::try_from(pr).expect("small") * 2),
            }
            story.act(|world| world.take_in(&signalbox_domain::queue::Fact::TimePassed));
        }
        story.advance(200);
        let told = story.told(&schemas);
        prop_assert_eq!(told.len(), story.events.len());
        let numbers: BTreeSet<u64> = story.events.iter().map(|event| event.number).collect();
        prop_assert_eq!(numbers.len(), story.events.len());
        for event in &story.events {
            if let Subject::Batch { prs, together } = &event.subject {
                prop_assert!(together.len() > 1);
                prop_assert!(!prs.is_empty() && prs.iter().all(|pr| together.contains(pr)));
            }
        }
    }
}
