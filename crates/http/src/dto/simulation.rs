//! A simulation of a queue: its parameters and the reply.

use std::collections::BTreeSet;

use serde::Serialize;
use signalbox_domain::ids::{BranchName, RepoName};
use signalbox_domain::queue::{SETTINGS, SettingKind, SettingSpec, SettingsPatch, setting};
use signalbox_services::WhatIf;
use signalbox_simulator::{Example, Finding, Interval, Replay, is_simulated};
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{Ref, RefOr, Required, Schema};
use utoipa::{IntoParams, ToSchema};

use super::field::{Errors, shown};
use super::place::broken;
use super::setting as wire;
use super::shapes::{BranchText, RepoText};
use crate::problem::Problem;

/// The most characters of the name of an unknown parameter that an error repeats.
const MAX_NAME: usize = 100;

/// The parameters of a simulation.
pub(crate) struct SimulationQuery;

/// The checked parameters.
#[derive(Debug)]
pub(crate) struct Simulation {
    pub(crate) repo: RepoName,
    pub(crate) branch: BranchName,
    pub(crate) days: u32,
    pub(crate) change: SettingsPatch,
}

/// A simulated setting that is a number, a flag or a word: a parameter.
fn parameter(name: &str) -> Option<&'static SettingSpec> {
    let spec = setting(name).filter(|spec| is_simulated(spec))?;
    let is_single =
        matches!(spec.kind, SettingKind::Whole { .. } | SettingKind::Flag | SettingKind::Word(_));
    is_single.then_some(spec)
}

impl SimulationQuery {
    /// Reads the parameters. Unknown ones are refused: a misspelled setting would seem to have no effect.
    pub(crate) fn read(given: &[(String, String)]) -> Result<Simulation, Problem> {
        let mut errors = Errors::default();
        let (mut repo, mut branch, mut days) = (None, None, None);
        let mut change = SettingsPatch::default();
        let mut given_names = BTreeSet::new();
        for (name, text) in given {
            if !given_names.insert(name) {
                errors.add(pointer(name), "must be given once");
                break;
            }
            match name.as_str() {
                "repo" => repo = Some(text),
                "targetBranch" => branch = Some(text),
                "days" => days = Some(text),
                _ => {
                    let Some(spec) = parameter(name) else {
                        let rule = "is not a parameter: must be repo, targetBranch, days, or a simulated setting";
                        errors.add(pointer(name), rule);
                        break;
                    };
                    if let Some(value) = wire::from_text(spec, text, &mut errors) {
                        spec.set(&mut change, value);
                    }
                }
            }
        }
        let repo = required("repo", repo, &mut errors).and_then(|repo| {
            let checked = RepoName::parse(repo).map_err(|error| broken(&error));
            errors.keep("/repo", checked)
        });
        let branch = required("targetBranch", branch, &mut errors).and_then(|branch| {
            let checked = BranchName::new(branch.as_str()).map_err(|error| broken(&error));
            errors.keep("/targetBranch", checked)
        });
        let most = WhatIf::MOST_DAYS;
        let days = days.map_or(Some(WhatIf::DAYS), |text| {
            let days = text.parse().ok().filter(|days| (1..=most).contains(days));
            let rule =
                || format!("must be a whole number from 1 to {most}, but is {}", shown(text));
            errors.keep("/days", days.ok_or_else(rule))
        });
        let read = repo.zip(branch).zip(days);
        errors.finish(read.map(|((repo, branch), days)| Simulation { repo, branch, days, change }))
    }
}

/// The pointer of a parameter that may have any name.
fn pointer(name: &str) -> String {
    let name: String = name.chars().take(MAX_NAME).collect();
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

fn required<'a>(name: &str, text: Option<&'a String>, errors: &mut Errors) -> Option<&'a String> {
    if text.is_none() {
        errors.add(format!("/{name}"), "is required");
    }
    text
}

impl IntoParams for SimulationQuery {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let parameter = |name: &str, required, description: &str, schema: RefOr<Schema>| {
            ParameterBuilder::new()
                .name(name)
                .parameter_in(ParameterIn::Query)
                .required(required)
                .description(Some(description))
                .schema(Some(schema))
        };
        let repo = Ref::from_schema_name(RepoText::name()).into();
        let days = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(1))
            .maximum(Some(WhatIf::MOST_DAYS))
            .into();
        let branch = Ref::from_schema_name(BranchText::name()).into();
        let of_branch = "The branch that the merge queue targets.";
        let of_days = "The number of days up to now; default 14. Of the pull requests that left the queue in these \
             days, only the 1,000 that were submitted last are read.";
        let mut parameters = vec![
            parameter("repo", Required::True, "The repository, as `host/owner/name`.", repo)
                .example(Some("github.com/acme/calc".into())),
            parameter("targetBranch", Required::True, of_branch, branch)
                .example(Some("main".into())),
            parameter("days", Required::False, of_days, days),
        ];
        let changes = SETTINGS.iter().filter_map(|spec| self::parameter(spec.name));
        parameters.extend(changes.map(|spec| {
            parameter(spec.name, Required::False, spec.doc(), wire::parameter_schema(spec))
        }));
        parameters.into_iter().map(ParameterBuilder::build).collect()
    }
}

/// A mean, or a median, with its 95 % interval.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct IntervalReply {
    /// The mean over the seeds; of what was recorded, the median.
    mean: f64,
    /// The lower end.
    low: f64,
    /// The upper end.
    high: f64,
}

impl IntervalReply {
    const fn of(Interval { mean, low, high }: Interval) -> Self {
        Self { mean, low, high }
    }
}

/// What was recorded.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RecordedReply {
    /// The median of the minutes in the queue.
    median_minutes: IntervalReply,
    /// The 95th percentile of the minutes in the queue.
    p95_minutes: f64,
    /// The number of submissions that ended without a test result; they are not simulated.
    cancelled: usize,
}

/// What a combination of settings gives.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CombinationReply {
    /// Whether these are the present settings of the queue.
    present: bool,
    /// Whether these settings are recommended: they have the fewest test runs among the settings whose
    /// median is at most 1.2 times the lowest.
    advised: bool,
    /// The median of the minutes in the queue.
    median_minutes: IntervalReply,
    /// The 95th percentile of the minutes in the queue.
    p95_minutes: IntervalReply,
    /// The median divided by the median of an oracle: a queue with the same number of test slots that knows which
    /// pull requests merge, and tests each once.
    median_by_oracle: IntervalReply,
    /// The 95th percentile divided by the oracle's.
    p95_by_oracle: IntervalReply,
    /// Pull requests that merge in an hour.
    merged_per_hour: IntervalReply,
    /// Test runs for each pull request.
    runs_per_pull_request: IntervalReply,
    /// Minutes of test runs for each merged pull request.
    run_minutes_per_merge: IntervalReply,
    /// The share of test runs that were cancelled before their end.
    cancelled_runs: IntervalReply,
    /// The share of pull requests that failed although they were good.
    false_ejections: IntervalReply,
}

/// What the changed settings would have meant for a pull request.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExampleReply {
    /// Its number.
    #[schema(minimum = 1)]
    pr_number: u32,
    /// Its minutes in the queue, simulated with the present settings.
    minutes_before: f64,
    /// Its minutes in the queue with the changed settings.
    minutes: f64,
}

/// A simulation of a queue.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "from": "2026-11-13T08:02:26.000Z", "until": "2026-11-27T07:40:11.000Z",
    "pullRequests": 300, "seeds": 20,
    "recorded": {
        "medianMinutes": {"mean": 57.0, "low": 51.5, "high": 63.0}, "p95Minutes": 170.0, "cancelled": 12
    },
    "modelFits": true,
    "combinations": [
        {
            "present": true, "advised": false,
            "medianMinutes": {"mean": 55.2, "low": 52.0, "high": 58.1},
            "p95Minutes": {"mean": 175.0, "low": 165.0, "high": 186.0},
            "medianByOracle": {"mean": 1.84, "low": 1.75, "high": 1.93},
            "p95ByOracle": {"mean": 3.1, "low": 2.9, "high": 3.3},
            "mergedPerHour": {"mean": 0.86, "low": 0.84, "high": 0.88},
            "runsPerPullRequest": {"mean": 1.33, "low": 1.3, "high": 1.36},
            "runMinutesPerMerge": {"mean": 41.0, "low": 40.0, "high": 42.0},
            "cancelledRuns": {"mean": 0.09, "low": 0.08, "high": 0.1},
            "falseEjections": {"mean": 0.0, "low": 0.0, "high": 0.0}
        },
        {
            "present": false, "advised": true,
            "medianMinutes": {"mean": 50.4, "low": 48.0, "high": 53.0},
            "p95Minutes": {"mean": 160.0, "low": 151.0, "high": 170.0},
            "medianByOracle": {"mean": 1.68, "low": 1.6, "high": 1.76},
            "p95ByOracle": {"mean": 2.9, "low": 2.7, "high": 3.0},
            "mergedPerHour": {"mean": 0.86, "low": 0.84, "high": 0.88},
            "runsPerPullRequest": {"mean": 0.85, "low": 0.8, "high": 0.91},
            "runMinutesPerMerge": {"mean": 26.0, "low": 25.0, "high": 27.5},
            "cancelledRuns": {"mean": 0.24, "low": 0.22, "high": 0.26},
            "falseEjections": {"mean": 0.0, "low": 0.0, "high": 0.0}
        }
    ],
    "examples": [{"prNumber": 299, "minutesBefore": 106.0, "minutes": 39.0}]
}))]
pub(crate) struct SimulationReply {
    /// When the first simulated pull request entered the line.
    #[schema(format = DateTime)]
    from: String,
    /// When the last one left the queue.
    #[schema(format = DateTime)]
    until: String,
    /// The number of simulated submissions: a pull request that was submitted twice counts twice.
    pull_requests: usize,
    /// The number of seeds: how often pull requests like these were drawn and simulated.
    seeds: u32,
    /// What was recorded.
    recorded: RecordedReply,
    /// Whether the simulation of the present settings agrees with what was recorded: its median lies
    /// within the interval of the recorded one or at most 5 % outside, and at most 2 % of the pull
    /// requests have another outcome. If not, the queue may have been paused, or its settings may have
    /// changed: then only the combinations are comparable.
    model_fits: bool,
    /// The present settings, then the changed ones if they differ.
    #[schema(min_items = 1, max_items = 2)]
    combinations: Vec<CombinationReply>,
    /// The pull requests that the changed settings would have affected most, largest improvement first.
    #[schema(max_items = 4)]
    examples: Vec<ExampleReply>,
}

impl SimulationReply {
    pub(crate) fn of(replay: &Replay) -> Self {
        let study = &replay.study;
        let combination = |it: &Finding| CombinationReply {
            present: study.is_recorded(it),
            advised: study.advice() == Some(it),
            median_minutes: IntervalReply::of(it.median),
            p95_minutes: IntervalReply::of(it.p95),
            median_by_oracle: IntervalReply::of(it.median_by_oracle),
            p95_by_oracle: IntervalReply::of(it.p95_by_oracle),
            merged_per_hour: IntervalReply::of(it.merged_per_hour),
            runs_per_pull_request: IntervalReply::of(it.runs),
            run_minutes_per_merge: IntervalReply::of(it.run_minutes),
            cancelled_runs: IntervalReply::of(it.cancelled),
            false_ejections: IntervalReply::of(it.false_ejections),
        };
        let example = |it: &Example| ExampleReply {
            pr_number: it.number,
            minutes_before: it.before,
            minutes: it.after,
        };
        Self {
            from: replay.period.0.to_string(),
            until: replay.period.1.to_string(),
            pull_requests: study.pull_requests,
            seeds: study.seeds,
            recorded: RecordedReply {
                median_minutes: IntervalReply::of(replay.median),
                p95_minutes: replay.p95,
                cancelled: replay.cancelled,
            },
            model_fits: replay.fits() == Some(true),
            combinations: study.findings.iter().map(combination).collect(),
            examples: replay.examples.iter().map(example).collect(),
        }
    }
}
