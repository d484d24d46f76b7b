//! Building candidates. A result that depends on the target's content, such as a conflict, only
//! counts if the target still has the head that the candidate was built on: a push may have fixed
//! it meanwhile.

use signalbox_domain::ids::{PrNumber, Sha};
use signalbox_domain::ports::{Built, GitHost, HostError, PullRequestQuery, QueueRef, Repository};
use signalbox_domain::queue::{BuildCandidate, ConflictWith, Fact, RunStatus};
use signalbox_domain::time::Timestamp;

use super::{Error, QueueContext, QueueService};

/// A candidate to build, with its queue and host.
pub(super) struct Order<'a> {
    pub(super) queue: QueueRef,
    pub(super) repository: &'a Repository,
    pub(super) build: &'a BuildCandidate,
    pub(super) read_at: Timestamp,
}

/// The result of a build.
pub(super) enum Verdict {
    /// These facts.
    Final(Vec<Fact>),
    /// A landing is active that may have moved the target, or the target is missing: the result is
    /// not final.
    Unsettled,
}

/// Builds a candidate.
pub(super) async fn build(
    context: &QueueContext,
    queues: &QueueService,
    host: &dyn GitHost,
    order: &Order<'_>,
) -> Result<Result<Verdict, HostError>, Error> {
    let Order { repository, build, .. } = order;
    let required = host.required_statuses(repository, &build.target, &build.target_head).await;
    let mut statuses = match required {
        Ok(statuses) => statuses,
        Err(error) => return Ok(Err(error)),
    };
    let mut built = match host.build_candidate(repository, build).await {
        Ok(built) => built,
        Err(error) => return Ok(Err(error)),
    };
    let speaks_against = match &built {
        Built::Candidate { .. } => {
            !statuses.are_usable() && !names_its_own(queues, order.queue).await?
        }
        Built::Conflict { .. } => true,
        Built::MergedBefore { .. } | Built::Mismatch(_) => false,
    };
    if speaks_against {
        let head = match settled_target(context, queues, host, order).await? {
            Ok(Some(head)) => head,
            Ok(None) => return Ok(Ok(Verdict::Unsettled)),
            Err(error) => return Ok(Err(error)),
        };
        if head != build.target_head {
            statuses = match host.required_statuses(repository, &build.target, &head).await {
                Ok(statuses) => statuses,
                Err(error) => return Ok(Err(error)),
            };
            if let Built::Conflict { .. } = built {
                let now = BuildCandidate { target_head: head, ..(*build).clone() };
                built = match host.build_candidate(repository, &now).await {
                    Ok(built) => built,
                    Err(error) => return Ok(Err(error)),
                };
            }
        }
    }
    if let Built::Conflict { pr, with, .. } = &built
        && !is_about(build, *pr, *with)
    {
        let words = format!(
            "unexpected answer of the host: a conflict of #{pr} with {with:?}, which are not part of the candidate"
        );
        return Ok(Err(HostError::Unavailable { words }));
    }
    let run = build.run;
    Ok(Ok(Verdict::Final(match built {
        Built::Candidate { candidate, head_checks, empty, composition } => {
            let branch = build.branch.clone();
            let forge = context.hosts.forge(repository.org, &repository.name.host);
            vec![Fact::CandidateBuilt {
                run,
                branch,
                candidate,
                statuses,
                head_checks,
                empty,
                composition,
                has_forge: forge.is_some(),
            }]
        }
        Built::Conflict { pr, with, paths } => {
            vec![Fact::CandidateConflict { run, pr, with, paths }]
        }
        Built::Mismatch(mismatch) => vec![Fact::CandidateMismatch { run, mismatch }],
        Built::MergedBefore { pr } => {
            let seen = match host.pull_request(repository, &PullRequestQuery::Number(pr)).await {
                Ok(seen) => seen,
                Err(error) => return Ok(Err(error)),
            };
            let read_at = order.read_at;
            let seen = match seen {
                Some(seen) => Fact::PullRequestSeen { pull_request: Box::new(seen), read_at },
                None => Fact::PullRequestGone { pr },
            };
            // The first fact removes the pull request, and the second then has no effect. No run
            // remains active, whatever the host shows.
            let words = format!("#{pr} has already landed with this head");
            vec![seen, Fact::CandidateRefused { run, words }]
        }
    })))
}

/// Whether a conflict is about pull requests and runs of this build.
fn is_about(build: &BuildCandidate, pr: PrNumber, with: ConflictWith) -> bool {
    let place = |pr: PrNumber| build.changes.iter().position(|change| change.pr == pr);
    let Some(at) = place(pr) else { return false };
    match with {
        ConflictWith::Target => true,
        ConflictWith::Ahead(run) => {
            build.ahead.iter().any(|ahead| ahead.run == run)
                || build.before.iter().any(|(before, _)| *before == run)
        }
        ConflictWith::Group(other) => place(other).is_some_and(|other| other < at),
    }
}

/// Whether a queue has required statuses of its own, so that the repository and the host are not
/// read.
async fn names_its_own(queues: &QueueService, queue: QueueRef) -> Result<bool, Error> {
    let state = queues.state(queue).await?;
    let own = state.as_ref().and_then(|it| it.header.settings.required_statuses.as_ref());
    Ok(own.is_some_and(|names| !names.is_empty()))
}

/// Reads the target again. If it has moved, the queue absorbs that first, and cancels the run
/// unless its base is still valid. `None` while the result is not final.
async fn settled_target(
    context: &QueueContext,
    queues: &QueueService,
    host: &dyn GitHost,
    order: &Order<'_>,
) -> Result<Result<Option<Sha>, HostError>, Error> {
    let Order { queue, repository, build, .. } = order;
    let read_at = context.clock.now();
    let head = match host.head(repository, &build.target).await {
        Ok(Some(head)) => head,
        Ok(None) => {
            queues.absorb(*queue, Fact::TargetMissing).await?;
            return Ok(Ok(None));
        }
        Err(error) => return Ok(Err(error)),
    };
    let sha = head.sha.clone();
    if sha == build.target_head {
        return Ok(Ok(Some(sha)));
    }
    queues.absorb(*queue, Fact::TargetSeen { head: head.sha, tree: head.tree, read_at }).await?;
    let Some(state) = queues.state(*queue).await? else { return Ok(Ok(Some(sha))) };
    let is_building = state.run(build.run).is_some_and(|run| run.status == RunStatus::Building);
    let is_known = state.header.target.head.as_ref() == Some(&sha);
    Ok(Ok((is_known || !is_building).then_some(sha)))
}
