//! From what an upload's files say to runs of tests.

use std::collections::BTreeSet;

use crate::flaky::{
    Base, BranchClass, BranchRules, Origin, ReportedRun, RunOutcome, TestKey, Trust, Upload,
    UploadSource,
};
use crate::ids::{OrgSlug, PrNumber, RepoName, Sha};
use crate::time::{Span, Timestamp};

use super::ci::{self, CiRun};
use super::record::{Received, UploadRecord};
use super::time::{AHEAD_MINUTES, is_set};
use super::warning::{self, UploadWarning};
use super::{BundleMeta, FoundReport, FoundRun, clean_branch};

/// Hours that a test may start before its commit was made: clocks differ.
const BEFORE_COMMIT_HOURS: u32 = 24;
/// The most bytes of a name that is only shown.
const MAX_SHOWN: usize = 1_000;
/// Runs after which memory that is no longer needed is freed.
const FREED_AT_A_TIME: usize = 10_000;
/// The most bytes of a variant; uploaders cut there too.
const MAX_VARIANT: usize = 64;

/// What a repository and the server say about results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappingRules {
    /// The classes of branches.
    pub branches: BranchRules,
    /// Tests that started before it are not kept.
    pub oldest: Timestamp,
    /// Whether uploads without a token count.
    pub count_public_uploads: bool,
}

/// An upload after the mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// The upload.
    pub upload: Upload,
    /// Its runs, without runs that are too old to be kept.
    pub runs: Vec<ReportedRun>,
    /// Runs that are too old to be kept.
    pub too_old: usize,
    /// Why it looks bad.
    pub warnings: Vec<UploadWarning>,
}

/// The metadata of an upload: from its sender, then its CI system, then git. Without a clone,
/// values that the sender gave in place of git take precedence over the CI system.
pub fn upload_of(
    record: &UploadRecord,
    received: &Received,
    meta: Option<&BundleMeta>,
    rules: &BranchRules,
) -> Upload {
    let claims = &record.claims;
    let mut ci = meta.map(|meta| CiRun::of(&meta.variables)).unwrap_or_default();
    if claims.proven {
        // Variables are whatever the job sets.
        (ci.pr, ci.merge_train) = (None, false);
    }
    let git_branch = meta.map(|meta| clean_branch(&meta.branch)).filter(|it| !it.is_empty());
    let by_ci = if meta.is_some_and(|meta| meta.uncloned) {
        git_branch.clone().or(ci.branch.clone())
    } else {
        ci.branch.clone().or_else(|| git_branch.clone())
    };
    let claimed = claims.branch.as_deref().map(clean_branch).filter(|it| !it.is_empty());
    let branch = claimed.or(by_ci).map(shown).unwrap_or_default();
    let sha = claims.sha.as_deref().or(meta.map(|meta| meta.sha.as_str()));
    let in_branch = ci::number(&branch).filter(|_| looks_like_pr(&branch));
    let pr = claims.pr.or(ci.pr).or(in_branch);
    let git_author = meta.map(|meta| meta.author.clone()).filter(|it| !it.is_empty());
    let variant = meta.map_or(claims.variant.as_str(), |meta| meta.variant.as_str());
    let sha = sha.and_then(|sha| Sha::new(sha.trim().to_ascii_lowercase()).ok());
    let class = claims.class.unwrap_or_else(|| class(rules, &branch, pr, ci.merge_train));
    let origin = origin(record, &ci, class, pr, sha.as_ref());
    Upload {
        id: record.id,
        org: record.org,
        repo: record.repo,
        source: record.source,
        trust: record.trust,
        received_at: received.at,
        sha,
        committed_at: meta.and_then(|meta| meta.committed_at),
        class,
        branch,
        pr,
        job_url: claims.job_url.clone().or(ci.job_url).map(shown).filter(|it| is_address(it)),
        job_name: claims.job_name.clone().or(ci.job_name).map(shown),
        origin,
        author: claims.author.clone().or(git_author).or(ci.author).map(shown),
        variant: kept_variant(variant).to_owned(),
    }
}

/// The job and the base of a run, as far as its sender and its CI system name them.
fn origin(
    record: &UploadRecord,
    ci: &CiRun,
    class: BranchClass,
    pr: Option<PrNumber>,
    sha: Option<&Sha>,
) -> Origin {
    let claims = &record.claims;
    // The job of a check of the plain git host has another name in every run.
    let claimed = match record.source {
        UploadSource::Checks => claims.check.as_ref(),
        UploadSource::Bundle | UploadSource::JUnit | UploadSource::Import => {
            claims.job_name.as_ref().or(claims.check.as_ref())
        }
    };
    let claimed = claimed.filter(|it| !it.is_empty());
    let of_ci: Vec<&str> = ci.job.iter().map(String::as_str).collect();
    let claimed = claimed.map(|job| vec![record.source.as_str(), job.as_str()]);
    let is_claimed = claimed.is_some();
    let job = claimed.or_else(|| (!of_ci.is_empty()).then_some(of_ci));
    let tested = claims.base.as_deref().or(ci.revision.as_deref()).map(str::trim);
    let tested = tested.filter(|it| !it.is_empty());
    // What is tested on a stable branch or by a queue is the commit itself.
    let base = match (class, tested, sha) {
        (BranchClass::Stable | BranchClass::Merge, _, _) => Base::Itself,
        (_, Some(tested), Some(sha)) if sha.as_str().eq_ignore_ascii_case(tested) => Base::Itself,
        (_, Some(tested), _) => Base::Merged(tested),
        (BranchClass::Other, None, _) if ci.provider.is_some() && pr.is_none() => Base::Itself,
        (BranchClass::Other | BranchClass::PullRequest, None, _) => Base::Unknown,
    };
    let origin = Origin::new(job.as_deref(), base);
    if is_claimed || ci.job.is_empty() || ci.attempt.is_empty() {
        return origin;
    }
    let attempt: Vec<&str> = ci.attempt.iter().map(String::as_str).collect();
    origin.in_attempt(&attempt)
}

/// What is kept of a variant's name.
pub fn kept_variant(variant: &str) -> &str {
    cut(variant, MAX_VARIANT)
}

/// An upload and its runs, as the sink takes them. Attempts are numbered through all files.
pub fn map(
    record: &UploadRecord,
    received: &Received,
    mut found: FoundReport,
    (org, repo): (&OrgSlug, &RepoName),
    rules: &MappingRules,
) -> Mapped {
    let upload = upload_of(record, received, found.meta.as_ref(), &rules.branches);
    let unreadable = found.files.iter().filter(|file| file.problem.is_some()).count();
    let warnings = warning::warnings(&upload, &found.runs, unreadable, rules.oldest);
    let all = found.runs.len();
    // Their own time is known and no longer kept, so they must not count as of another one.
    let is_too_old = |at: Timestamp| is_set(at) && at < rules.oldest;
    found.runs.retain(|run| !run.started_at.is_some_and(is_too_old));
    let too_old = all - found.runs.len();
    let mut excused = found.meta.map(|meta| meta.excused).unwrap_or_default();
    excused.extend(record.claims.excused.iter().cloned());
    let (org, repo) = (org.to_string(), repo.to_string());
    let is_trusted = record.trust == Trust::Token || rules.count_public_uploads;
    let reported = |run: FoundRun| {
        let key = TestKey {
            org: org.clone(),
            repo: repo.clone(),
            parent: run.parent,
            classname: run.classname,
            file: run.file,
            name: run.name,
            variant: upload.variant.clone(),
            info: run.info,
        }
        .cleaned();
        let failed = run.outcome == RunOutcome::Failed;
        let quarantined =
            failed && (run.quarantined || is_excused(&excused, &key, &run.other_files));
        ReportedRun {
            key: if is_trusted { key } else { key.without_given_id() },
            other_files: run.other_files,
            outcome: run.outcome,
            attempt: 0,
            started_at: run.started_at.filter(|at| believable(*at, &upload)),
            took: run.took,
            failure: run.failure.filter(|_| failed),
            owners: run.owners,
            quarantined,
        }
    };
    let mut runs: Vec<ReportedRun> = Vec::with_capacity(found.runs.len());
    // An upload may have very many runs: they are not kept in both forms.
    let mut left = found.runs;
    left.reverse();
    while let Some(run) = left.pop() {
        runs.push(reported(run));
        if left.len().is_multiple_of(FREED_AT_A_TIME) {
            left.shrink_to_fit();
        }
    }
    let attempts = attempts(&runs);
    for (run, attempt) in runs.iter_mut().zip(attempts) {
        run.attempt = attempt;
    }
    Mapped { upload, runs, too_old, warnings }
}

/// Which attempt at its test each run is, from 0: in the order of their start times when all have
/// one, otherwise in the order of the files. A rerun's file may come before that of the first run.
fn attempts(runs: &[ReportedRun]) -> Vec<u32> {
    let mut order: Vec<(usize, &ReportedRun)> = runs.iter().enumerate().collect();
    order.sort_by(|(_, one), (_, other)| one.key.cmp(&other.key));
    let mut attempts = vec![0; runs.len()];
    for of_test in order.chunk_by_mut(|(_, one), (_, other)| one.key == other.key) {
        if of_test.iter().all(|(_, run)| run.started_at.is_some()) {
            of_test.sort_by_key(|(_, run)| run.started_at);
        }
        for (number, (at, _)) in (0..).zip(of_test) {
            if let Some(attempt) = attempts.get_mut(*at) {
                *attempt = number;
            }
        }
    }
    attempts
}

/// Whether the uploader said that it excused this test's failure.
fn is_excused(excused: &BTreeSet<String>, key: &TestKey, other_files: &[String]) -> bool {
    if excused.is_empty() {
        return false;
    }
    let other_files: Vec<&str> = other_files.iter().map(String::as_str).collect();
    key.sent_ids(&other_files).iter().any(|id| excused.contains(id))
}

/// Not before its commit by much, not after its upload, and set at all.
fn believable(at: Timestamp, upload: &Upload) -> bool {
    let of_commit = upload.committed_at.map(|it| it.minus(Span::hours(BEFORE_COMMIT_HOURS)));
    let latest = upload.received_at.plus(Span::minutes(AHEAD_MINUTES));
    is_set(at) && of_commit.is_none_or(|earliest| at >= earliest) && at <= latest
}

/// The class of a branch: what known merge queues make, then what belongs to a pull request, then
/// the repository's rules.
fn class(
    rules: &BranchRules,
    branch: &str,
    pr: Option<PrNumber>,
    merge_train: bool,
) -> BranchClass {
    let made_by_queue = ["trunk-merge/", "gh-readonly-queue/", "/gtmq_"];
    let of_queue = merge_train
        || made_by_queue.iter().any(|part| branch.contains(part))
        || branch.starts_with("gtmq_");
    if of_queue {
        BranchClass::Merge
    } else {
        rules.classify(branch, pr.is_some() || looks_like_pr(branch))
    }
}

fn looks_like_pr(branch: &str) -> bool {
    branch.starts_with("pull/") || branch.starts_with("remotes/pull/")
}

/// Links are shown on pages: only http and https addresses are links.
fn is_address(text: &str) -> bool {
    text.starts_with("https://") || text.starts_with("http://")
}

fn shown(text: String) -> String {
    if text.len() <= MAX_SHOWN { text } else { cut(&text, MAX_SHOWN).to_owned() }
}

/// The longest start of a text that has at most that many bytes and cuts no character in two.
fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

#[cfg(test)]
mod tests;
