//! Building candidates on the plain git host, against the two commands of git that do the work.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use signalbox_domain::ids::{BranchName, OrgId, PrNumber, RunId, Sha};
use signalbox_domain::ports::{Built, GitHost, IdSource};
use signalbox_domain::queue::{BuildCandidate, Change, MergeMethod};
use signalbox_git::{HostConfig, PlainGitHost};
use signalbox_testkit::memory::MemoryDatabase;

use super::Operation;
use crate::bare::Repo;
use crate::failure::{During, Failure};
use crate::measure::{in_turn, micros_each};
use crate::parts::{RandomIds, SystemClock};
use crate::report::{Report, Row, count};
use crate::setup::Setup;

/// Files of the repository.
const SIZES: [usize; 2] = [2_000, 20_000];
const BRANCHES: usize = 100;
/// The size that the goal is about, and the least share of the floor's throughput.
const GOAL: (usize, f64) = (20_000, 0.8);

/// Building candidates.
pub(crate) struct Candidates;

#[async_trait(?Send)]
impl Operation for Candidates {
    fn name(&self) -> &'static str {
        "candidate"
    }

    async fn run(&self, setup: &Setup, report: &mut Report) -> Result<(), Failure> {
        for files in setup.sizes(&SIZES) {
            let folder = setup.folder()?;
            let branches = setup.many(BRANCHES);
            let repo = Repo::new(folder.path(), *files, branches)?;
            let host = PlainGitHost::new(
                HostConfig { root: None, public_url: "http://localhost".to_owned() },
                MemoryDatabase::new().stores().host.pull_requests,
                Arc::new(SystemClock),
            );
            let repository = repo.registered(OrgId(RandomIds.new_id()))?;
            let turns = in_turn(
                setup.rounds,
                async || {
                    let begun = Instant::now();
                    for head in &repo.heads {
                        merge(&repo, head)?;
                    }
                    Ok(micros_each(begun.elapsed(), branches))
                },
                async || {
                    let begun = Instant::now();
                    for (number, head) in (1..).zip(&repo.heads) {
                        let order = order(&repo, number, head)?;
                        let built = host.build_candidate(&repository, &order).await;
                        if let Built::Conflict { .. } = built.during("a candidate")? {
                            return Err(Failure::new("a candidate", "must not conflict"));
                        }
                    }
                    Ok(micros_each(begun.elapsed(), branches))
                },
            )
            .await?;
            let data = format!("{} files, {branches} branches", count(*files));
            let row = Row::against("candidate building", data, &turns);
            report.add(if *files == GOAL.0 { row.at_least(GOAL.1) } else { row });
        }
        Ok(())
    }
}

/// The final step of the product: a merged tree, and a commit of it.
fn merge(repo: &Repo, head: &str) -> Result<(), Failure> {
    let tree = repo.git(&["merge-tree", "--write-tree", &repo.main, head], None)?;
    repo.git(&["commit-tree", &tree, "-p", &repo.main, "-m", "change"], None).map(drop)
}

fn order(repo: &Repo, number: u32, head: &str) -> Result<BuildCandidate, Failure> {
    let sha = |text: &str| Sha::new(text).during("a commit");
    Ok(BuildCandidate {
        run: RunId(RandomIds.new_id()),
        target: BranchName::new("main").during("a branch")?,
        target_head: sha(&repo.main)?,
        base: sha(&repo.main)?,
        before: Vec::new(),
        ahead: Vec::new(),
        changes: vec![Change {
            pr: PrNumber(number),
            head: sha(head)?,
            title: format!("Change {number}"),
            body: String::new(),
            author: "ada".to_owned(),
        }],
        method: MergeMethod::Squash,
        branch: BranchName::new(format!("signalbox-temp/{number}")).during("a branch")?,
        direct: false,
    })
}
