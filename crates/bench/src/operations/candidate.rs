//! Building candidates on the plain git host, against the two commands of git that do the work.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use signalbox_domain::ids::{BranchName, OrgId, PrNumber, RepoId, RepoName, RunId, Sha};
use signalbox_domain::ports::{Built, Clock, GitHost, IdSource, Repository};
use signalbox_domain::queue::{BuildCandidate, Change, MergeMethod};
use signalbox_git::{HostConfig, PlainGitHost};
use signalbox_testkit::memory::MemoryDatabase;

use super::Operation;
use crate::failure::{During, Failure};
use crate::measure::{in_turn, micros_each};
use crate::parts::{RandomIds, SystemClock};
use crate::report::{Report, Row, count};
use crate::setup::Setup;

/// Files of the repository.
const SIZES: [usize; 2] = [2_000, 20_000];
const BRANCHES: usize = 100;
/// Files in a folder.
const FOLDER: usize = 100;
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
            let repository = repo.registered()?;
            let turns = in_turn(
                setup.rounds,
                async || {
                    let begun = Instant::now();
                    for head in &repo.heads {
                        repo.merge(head)?;
                    }
                    Ok(micros_each(begun.elapsed(), branches))
                },
                async || {
                    let begun = Instant::now();
                    for (number, head) in (1..).zip(&repo.heads) {
                        let order = repo.order(number, head)?;
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

/// A bare repository whose branches each change a file of their own.
struct Repo {
    path: PathBuf,
    main: String,
    heads: Vec<String>,
}

impl Repo {
    fn new(folder: &Path, files: usize, branches: usize) -> Result<Self, Failure> {
        let path = folder.join("bare.git");
        let bare = Self { path, main: String::new(), heads: Vec::new() };
        std::fs::create_dir_all(&bare.path).during("a repository")?;
        bare.git(&["init", "-q", "--bare", "-b", "main"], None)?;
        bare.git(&["fast-import", "--quiet"], Some(&history(files, branches)))?;
        let main = bare.git(&["rev-parse", "main"], None)?;
        let heads: Result<Vec<String>, Failure> = (0..branches)
            .map(|number| bare.git(&["rev-parse", &format!("change-{number}")], None))
            .collect();
        Ok(Self { main, heads: heads?, ..bare })
    }

    fn registered(&self) -> Result<Repository, Failure> {
        Ok(Repository {
            id: RepoId(RandomIds.new_id()),
            org: OrgId(RandomIds.new_id()),
            name: RepoName::parse("git.local/acme/calc").during("a repository")?,
            path: Some(self.path.display().to_string()),
            created_at: SystemClock.now(),
        })
    }

    /// The final step of the product: a merged tree, and a commit of it.
    fn merge(&self, head: &str) -> Result<(), Failure> {
        let tree = self.git(&["merge-tree", "--write-tree", &self.main, head], None)?;
        self.git(&["commit-tree", &tree, "-p", &self.main, "-m", "change"], None).map(drop)
    }

    fn order(&self, number: u32, head: &str) -> Result<BuildCandidate, Failure> {
        let sha = |text: &str| Sha::new(text).during("a commit");
        Ok(BuildCandidate {
            run: RunId(RandomIds.new_id()),
            target: BranchName::new("main").during("a branch")?,
            target_head: sha(&self.main)?,
            base: sha(&self.main)?,
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

    /// Calls git in the repository; returns its output.
    fn git(&self, args: &[&str], input: Option<&str>) -> Result<String, Failure> {
        let mut child = Command::new("git")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "--git-dir"])
            .arg(&self.path)
            .args(args)
            .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .during("git")?;
        if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
            stdin.write_all(input.as_bytes()).during("git")?;
        }
        let done = child.wait_with_output().during("git")?;
        if done.status.success() {
            return Ok(String::from_utf8_lossy(&done.stdout).trim_end().to_owned());
        }
        let words = String::from_utf8_lossy(&done.stderr).into_owned();
        Err(Failure::new(&format!("git {}", args.join(" ")), words))
    }
}

/// The repository as a stream for `git fast-import`.
fn history(files: usize, branches: usize) -> String {
    let mut text = String::new();
    let path = |file: usize| format!("folder-{}/file-{file}", file / FOLDER);
    let mut commit =
        |branch: &str, from: Option<&str>, files: &mut dyn Iterator<Item = (usize, String)>| {
            let _ = write!(
                text,
                "commit refs/heads/{branch}\ncommitter Ada <ada@example.org> 1767225600 +0000\n\
             data 6\nchange\n"
            );
            if let Some(from) = from {
                let _ = writeln!(text, "from {from}");
            }
            for (file, content) in files {
                let (path, length) = (path(file), content.len());
                let _ = writeln!(text, "M 100644 inline {path}\ndata {length}\n{content}");
            }
            text.push('\n');
        };
    let content = |file: usize| format!("first line of {file}\nmiddle\nlast line\n");
    commit("main", None, &mut (0..files).map(|file| (file, content(file))));
    for number in 0..branches {
        let file = number * (files / branches);
        let changed = content(file).replace("last", "changed");
        let branch = format!("change-{number}");
        commit(&branch, Some("refs/heads/main"), &mut std::iter::once((file, changed)));
    }
    // The target gets commits after the branches have forked, so that there is something to merge.
    let changed = content(1).replace("first", "changed");
    commit("main", None, &mut std::iter::once((1, changed)));
    text
}
