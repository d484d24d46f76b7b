//! Histories: what a simulated queue did is replayed to the same figures, and every mistake in a file is
//! named.

use std::cell::Cell;

use signalbox_domain::queue::{Mode, Settings, SuccessEstimates};
use signalbox_domain::time::Span;
use signalbox_simulator::{
    Agents, Change, Choice, Conditions, Durations, Effort, History, Outcome, Overlap, Replay,
    SimulationError, Source, Stream, Workload, simulate,
};

const CONDITIONS: Conditions = Conditions { flaky: 0.0, host_seconds: 2, warm_up: 0.0 };

type Stay<'a> = ((&'a Change, &'a f64), &'a bool);

/// What a queue that got this stream recorded.
fn recorded(stream: &Stream, outcome: &Outcome, paused: Span) -> Vec<String> {
    let stays = stream.changes.iter().zip(&outcome.minutes_in_queue).zip(&outcome.merges);
    let line = |(number, ((change, minutes), merged)): (usize, Stay<'_>)| {
        let stay = std::time::Duration::from_secs_f64(minutes * 60.0).as_micros();
        let ended = change.at.plus(Span::from_micros(i64::try_from(stay).expect("short")));
        let minutes = change.tests_take.to_std().as_secs_f64() / 60.0;
        serde_json::json!({
            "number": number + 1,
            "queuedAt": change.at.to_string(),
            "endedAt": ended.plus(paused).to_string(),
            "outcome": if *merged { "MERGED" } else { "FAILED" },
            "testMinutes": minutes,
        })
        .to_string()
    };
    stays.enumerate().map(line).collect()
}

fn history(lines: &[String]) -> Result<History, SimulationError> {
    History::parse(&lines.join("\n"), CONDITIONS, None)
}

fn settings_line(concurrency: u32, batch: u32) -> String {
    let settings =
        serde_json::json!({ "concurrency": concurrency, "batch": true, "batchingMinSize": batch });
    serde_json::json!({ "settings": settings }).to_string()
}

fn workload() -> Workload {
    Workload {
        pull_requests: 200,
        durations: Durations::LogNormal { median: 30.0, sigma: 0.35 },
        failing: 0.06,
        host_seconds: 2,
        ..Workload::default()
    }
}

#[test]
fn a_replay_with_the_recorded_settings_gives_what_happened() {
    for seed in 1..=3 {
        let stream = workload().stream(seed).expect("a stream");
        let mut lines = vec![settings_line(12, 3)];
        let settings = history(&[&lines[..], &recorded_once(&stream)].concat()).expect("a history");
        let settings = settings.settings.expect("settings");
        let outcome = simulate(&stream, &settings).expect("an outcome");
        lines.extend(recorded(&stream, &outcome, Span::ZERO));
        let history = history(&lines).expect("a history");
        // One that is worse is not advised, and its examples show why.
        let worse = Choice::new(1, 1, &settings).expect("valid");
        let replay =
            Replay::new(&history, vec![worse.clone()], Effort::seeds(1)).expect("a replay");
        assert_eq!(
            (replay.fits(), replay.other_outcomes.to_bits()),
            (Some(true), 0.0_f64.to_bits())
        );
        let (median, p95) = replay.simulated.expect("settings");
        assert!((median - replay.median.mean).abs() < 0.01 && (p95 - replay.p95).abs() < 0.01);
        assert_eq!((replay.changed, replay.examples.len()), (Some(worse), 4));
        assert!(replay.examples.iter().all(|it| it.after > it.before), "{:?}", replay.examples);
    }
}

#[test]
fn a_replay_that_is_stopped_has_fewer_seeds_or_no_result() {
    let stream = workload().stream(1).expect("a stream");
    let history = history(&recorded_once(&stream)).expect("a history");
    let choice = Choice::new(12, 1, &Settings::default()).expect("valid");
    let replay = |steps: usize, seeds: u32| {
        let left = Cell::new(steps);
        let may_continue = || left.replace(left.get().saturating_sub(1)) > 0;
        let effort = Effort { seeds, may_continue: &may_continue };
        Replay::new(&history, vec![choice.clone()], effort)
    };
    let whole = replay(usize::MAX, 8).expect("a replay");
    let once = simulate(&history.recorded(), &choice.settings).expect("an outcome").steps;
    assert_eq!(whole.study.seeds, 8);
    // Without the last step of the last seed.
    let stopped = replay(once + whole.study.steps - 1, 8).expect("a replay");
    assert_eq!(stopped, replay(usize::MAX, 7).expect("a replay"));
    for steps in [0, once, 3 * once] {
        let error = replay(steps, 8).expect_err("no result");
        assert!(matches!(error, SimulationError::Stopped), "{error}");
    }
}

/// Any history of a stream.
fn recorded_once(stream: &Stream) -> Vec<String> {
    recorded(stream, &simulate(stream, &Settings::default()).expect("an outcome"), Span::ZERO)
}

#[test]
fn a_queue_that_was_paused_does_not_fit() {
    let stream = workload().stream(1).expect("a stream");
    let outcome =
        simulate(&stream, &Settings::builder().concurrency(12_u32).build().expect("valid"));
    let outcome = outcome.expect("an outcome");
    let lines = recorded(&stream, &outcome, Span::hours(3));
    let settings = serde_json::json!({ "settings": { "concurrency": 12 } }).to_string();
    let with_settings = [&[settings][..], &lines].concat();
    let replay =
        Replay::new(&history(&with_settings).expect("a history"), Vec::new(), Effort::seeds(2));
    assert_eq!(replay.expect("a replay").fits(), Some(false));
    // Without settings nothing is claimed.
    let choice = Choice::new(12, 1, &Settings::default()).expect("valid");
    let replay = Replay::new(&history(&lines).expect("a history"), vec![choice], Effort::seeds(2));
    assert_eq!(replay.expect("a replay").fits(), None);
}

#[test]
fn better_settings_are_advised_with_pull_requests_that_they_change() {
    let stream = workload().stream(1).expect("a stream");
    let few =
        Settings::builder().concurrency(6_u32).bisection_concurrency(1_u32).build().expect("valid");
    let outcome = simulate(&stream, &few).expect("an outcome");
    let settings = serde_json::json!({ "settings": { "concurrency": 6 } }).to_string();
    let lines = [&[settings][..], &recorded(&stream, &outcome, Span::ZERO)].concat();
    let history = history(&lines).expect("a history");
    let more = Choice::new(20, 4, &few).expect("valid");
    let replay = Replay::new(&history, vec![more.clone()], Effort::seeds(3)).expect("a replay");
    assert_eq!(replay.study.findings.len(), 2);
    assert_eq!(replay.study.advice().map(|it| &it.choice), Some(&more));
    assert_eq!(replay.examples.len(), 4);
    let (before, after) =
        (simulate(&stream, &few).expect("it"), simulate(&stream, &more.settings).expect("it"));
    for example in &replay.examples {
        let place = usize::try_from(example.number).expect("small") - 1;
        let of = |outcome: &Outcome| outcome.minutes_in_queue[place];
        assert!((example.before - of(&before)).abs() < 0.01);
        assert!((example.after - of(&after)).abs() < 0.01);
        assert!((example.after - example.before).abs() > 1.0);
    }
}

#[test]
fn each_seed_draws_the_outcomes_of_the_history_at_its_own_times() {
    let stream = workload().stream(1).expect("a stream");
    let history = history(&recorded_once(&stream)).expect("a history");
    let drawn = [1, 2].map(|seed| history.stream(seed).expect("a stream"));
    assert_ne!(drawn[0].changes, drawn[1].changes);
    for it in &drawn {
        let times = |stream: &Stream| stream.changes.iter().map(|it| it.at).collect::<Vec<_>>();
        assert_eq!(times(it), times(&history.recorded()));
        let failing = it.changes.iter().filter(|it| it.fails).count();
        assert!((3..30).contains(&failing), "{failing}");
    }
}

/// With estimates by author, fewer careful authors are pretested: in a workload, and in its history if that
/// names the authors.
#[test]
fn estimates_by_author_help_where_authors_differ() {
    let agents = Some(Agents { share: 0.2, failing: 0.4 });
    let workload = Workload { pull_requests: 400, failing: 0.03, agents, ..workload() };
    let medians = |seeds, source: &dyn Fn(u64) -> Stream| {
        [SuccessEstimates::Queue, SuccessEstimates::Authors].map(|estimates| {
            let settings = Settings { success_estimates: estimates, ..Settings::default() };
            let settings = Choice::new(20, 1, &settings).expect("valid").settings;
            let median =
                |seed| simulate(&source(seed), &settings).expect("an outcome").minutes().median();
            (1..=seeds).map(median).sum::<f64>()
        })
    };
    let stated = |seed| workload.stream(seed).expect("a stream");
    let [queue, authors] = medians(3, &stated);
    assert!(authors < 0.9 * queue, "{authors} {queue}");
    let stream = stated(1);
    let lines = recorded_once(&stream);
    let [queue, authors] = {
        let history = history(&lines).expect("a history");
        medians(1, &|seed| history.stream(seed).expect("a stream"))
    };
    assert_eq!(authors.to_bits(), queue.to_bits(), "it does not name them");
    let named = |(line, change): (&String, &Change)| {
        let mut line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        line["author"] = change.author.clone().into();
        line.to_string()
    };
    let lines: Vec<String> = lines.iter().zip(&stream.changes).map(named).collect();
    let history = history(&lines).expect("a history");
    let [queue, authors] = medians(3, &|seed| history.stream(seed).expect("a stream"));
    assert!(authors < 0.9 * queue, "{authors} {queue}");
}

#[test]
fn lanes_need_the_targets_of_every_pull_request() {
    let areas = Workload { overlap: Overlap::Areas { count: 20 }, ..workload() };
    let lines = recorded_once(&areas.stream(1).expect("a stream"));
    let parallel = Settings::builder().mode(Mode::Parallel).build().expect("valid");
    let choice = Choice::new(12, 1, &parallel).expect("valid");
    let refused =
        Replay::new(&history(&lines).expect("a history"), vec![choice.clone()], Effort::seeds(1));
    assert!(refused.expect_err("refused").to_string().contains("needs the targets"));
    let with_targets = |line: &String| {
        let mut line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        line["targets"] =
            serde_json::json!([format!("a{}", line["number"].as_u64().unwrap_or(0) % 7)]);
        line.to_string()
    };
    let lines: Vec<String> = lines.iter().map(with_targets).collect();
    let single = Choice::new(12, 1, &Settings::default()).expect("valid");
    let replay =
        Replay::new(&history(&lines).expect("a history"), vec![choice, single], Effort::seeds(2));
    let [parallel, single] = &replay.expect("a replay").study.findings[..] else { panic!("two") };
    assert!(parallel.median.mean < 0.9 * single.median.mean, "{parallel:?} {single:?}");
}

/// Endless freezes have no end in the simulation either, and every day may be frozen.
#[test]
fn freezes_of_a_history_end_or_are_named() {
    let lines = recorded_once(&Workload { pull_requests: 5, ..workload() }.stream(1).expect("it"));
    let replay = |freezes: &[&str]| {
        let settings = serde_json::json!({ "settings": { "concurrency": 4, "freezes": freezes } });
        let lines = [&[settings.to_string()][..], &lines].concat();
        Replay::new(&history(&lines).expect("a history"), Vec::new(), Effort::seeds(1))
    };
    assert!(replay(&["2026-01-01T00:10 / ..[UTC] incident", "22:00/06:00[UTC]"]).is_ok());
    // The reason of a rule with an end, which holds the queue for months.
    let named =
        replay(&["2026-01-01T00:00/2026-03-01T00:00[UTC] see docs/../x"]).expect("a replay");
    assert!(named.simulated.is_some_and(|(_, p95)| p95 > 50.0 * 24.0 * 60.0), "{named:?}");
    let error = replay(&["06:00/22:00[UTC]", "22:00/06:00[UTC]"]).expect_err("never merges");
    assert!(error.to_string().contains("never leave the simulated queue"), "{error}");
}

/// The recorded durations contain the waiting for CI.
#[test]
fn timeouts_of_a_history_do_not_apply() {
    let stream = workload().stream(1).expect("a stream");
    let settings = serde_json::json!({ "settings": {
        "concurrency": 12, "testingTimeoutMinutes": 20, "automaticTestingTimeout": true,
    } });
    let free = Settings::builder().concurrency(12_u32).build().expect("valid");
    let outcome = simulate(&stream, &free).expect("an outcome");
    let lines = [&[settings.to_string()][..], &recorded(&stream, &outcome, Span::ZERO)].concat();
    let replay = Replay::new(&history(&lines).expect("a history"), Vec::new(), Effort::seeds(1))
        .expect("it");
    assert_eq!((replay.fits(), replay.other_outcomes.to_bits()), (Some(true), 0.0_f64.to_bits()));
}

#[test]
fn a_simulation_with_other_outcomes_does_not_fit() {
    let stream = workload().stream(1).expect("a stream");
    let outcome = simulate(&stream, &Settings::default()).expect("an outcome");
    let settings = serde_json::json!({ "settings": {} }).to_string();
    let lines = [&[settings][..], &recorded(&stream, &outcome, Span::ZERO)].concat();
    let flaky = Conditions { flaky: 0.1, ..CONDITIONS };
    let history = History::parse(&lines.join("\n"), flaky, None).expect("a history");
    let replay = Replay::new(&history, Vec::new(), Effort::seeds(1)).expect("a replay");
    assert!(replay.other_outcomes > 0.02, "{}", replay.other_outcomes);
    assert_eq!(replay.fits(), Some(false));
}

#[test]
fn the_first_pull_requests_do_not_count_with_a_warm_up() {
    let lines = recorded_once(&workload().stream(1).expect("a stream"));
    let with = |warm_up: f64| {
        History::parse(&lines.join("\n"), Conditions { warm_up, ..CONDITIONS }, None)
    };
    let half = with(0.5).expect("a history");
    assert_eq!(half.minutes().len(), 100);
    let replay = Replay::new(
        &half,
        vec![Choice::new(20, 1, &Settings::default()).expect("it")],
        Effort::seeds(1),
    );
    let replay = replay.expect("a replay");
    assert!(replay.examples.len() == 4 && replay.examples.iter().all(|it| it.number > 100));
    assert!(with(1.0).expect_err("none").to_string().contains("leaves no pull request"));
}

#[test]
fn every_setting_is_read_as_the_api_writes_it() {
    let stay = r#"{"number":1,"queuedAt":"2026-01-01T00:00:00Z","endedAt":"2026-01-01T01:00:00Z","outcome":"MERGED","testMinutes":9}"#;
    let settings = serde_json::json!({ "settings": {
        "mode": "PARALLEL", "concurrency": 7, "canOptimisticallyMerge": true,
        "freezes": ["22:00/06:00[UTC] night"], "enqueueingLabel": "go",
        "batchingRules": [{ "targetPattern": "db/*", "policy": "isolate" }],
        "requiredStatuses": ["ci"], "authorLimit": 3, "infrastructureMessages": ["a\nb"],
        "evidenceChecks": null,
    } });
    let read = history(&[settings.to_string(), stay.to_owned()]).expect("a history");
    let read = read.settings.expect("settings");
    assert_eq!(
        (read.mode, read.concurrency, read.can_optimistically_merge),
        (Mode::Parallel, 7, true)
    );
    assert_eq!(read.freezes.len(), 1);
    // The simulation has none of the others.
    let simulated = Settings {
        mode: Mode::Parallel,
        concurrency: 7,
        can_optimistically_merge: true,
        freezes: read.freezes.clone(),
        testing_timeout_minutes: 0,
        ..Settings::default()
    };
    assert_eq!(read, simulated);
}

#[test]
fn a_mistake_in_a_history_is_named_with_its_line() {
    let stay = r#"{"number":1,"queuedAt":"2026-01-01T00:00:00Z","endedAt":"2026-01-01T01:00:00Z","outcome":"MERGED"}"#;
    let settings = r#"{"settings":{"concurrency":5}}"#;
    let changed = |from: &str, to: &str| format!("{stay}\n{}", stay.replace(from, to));
    for (text, expected) in [
        ("{".to_owned(), "line 1 of the history is not JSON, column 1"),
        (changed("\"number\":1", "\"number\":0"), "line 2 of the history has an invalid number 0"),
        (changed("MERGED", "LOST"), "line 2 of the history is invalid: unknown variant `LOST`"),
        (
            changed("T01:00:00Z", " one"),
            "has an invalid endedAt \"2026-01-01 one\": must be a time in RFC 3339",
        ),
        (changed("\"endedAt\":\"2026-01-01", "\"endedAt\":\"2025-01-01"), "before its queuedAt"),
        (
            changed("\"outcome\"", "\"testMinutes\":0,\"outcome\""),
            "invalid testMinutes 0: must be more than 0",
        ),
        (
            changed("\"outcome\"", "\"minutes\":3,\"outcome\""),
            "is invalid: unknown field `minutes`",
        ),
        (
            format!("{stay}\n{settings}"),
            "line 2 of the history has settings, which are allowed only in the first line",
        ),
        (settings.replace("concurrency", "slots"), "has an unknown setting \"slots\""),
        (settings.replace('5', "0"), "concurrency must be a whole number from 1 to 1000"),
        (settings.replace('5', "\"a\""), "has an invalid value \"a\" of the setting concurrency"),
        ("\u{feff}{".to_owned(), "line 1 of the history is not JSON"),
        (settings.to_owned(), "no merged or failed pull requests"),
        (stay.replace("MERGED", "CANCELLED"), "no merged or failed pull requests"),
        (stay.to_owned(), "it has no test durations"),
    ] {
        let error = History::parse(&text, CONDITIONS, None).expect_err(&text).to_string();
        assert!(error.contains(expected), "{error}");
    }
    let beyond = Conditions { warm_up: 5.0, ..CONDITIONS };
    let error = History::parse(stay, beyond, None).expect_err("refused").to_string();
    assert!(error.contains("invalid warm-up share 5"), "{error}");
    for minutes in [-5.0, 1e300, 20_000.0] {
        let unknown = Some(Durations::Fixed { minutes });
        let error = History::parse(stay, CONDITIONS, unknown).expect_err("refused").to_string();
        assert!(error.contains("invalid test duration"), "{error}");
    }
    let unknown = Some(Durations::Fixed { minutes: 10.0 });
    let with_mark = format!("\u{feff}{stay}\r\n");
    let given = History::parse(&with_mark, CONDITIONS, unknown).expect("a history");
    assert_eq!(given.recorded().changes[0].tests_take, Span::minutes(10));
}
