//! `signalbox proof`: what landed, and its verification in a clone.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;
use signalbox_client::{Entry, QueueRef};
use signalbox_domain::ids::{BranchName, PrNumber, RepoName, Sha, TreeId};
use signalbox_domain::queue::{LandingProof, MergeMethod};
use signalbox_git::{LandingRecord, verify_landing};
use signalbox_terminal::{Format, say_json};

use crate::queue::QueueArgs;
use crate::server::{Server, repo, show};
use crate::{CliError, say};

#[derive(Subcommand)]
pub enum Proof {
    /// Show the record of a landing.
    #[command(
        after_help = "Example: signalbox proof show 12 --repo git.local/acme/calc --json > 12.json"
    )]
    Show {
        /// The number of the pull request.
        number: u32,
        #[command(flatten)]
        place: QueueArgs,
    },
    /// Compute the landed tree again in a clone, with git alone.
    #[command(
        after_help = "Example: signalbox proof verify 12 --repo git.local/acme/calc --clone ../calc\nExample: signalbox proof verify --record 12.json --clone ../calc"
    )]
    Verify {
        #[command(flatten)]
        of: Recorded,
        /// A clone of the repository, with the heads of the pull requests.
        #[arg(long, value_name = "FOLDER", default_value = ".")]
        clone: PathBuf,
        #[command(flatten)]
        format: Format,
    },
}

/// The record: from the server, or from a file.
#[derive(Args)]
pub struct Recorded {
    /// The number of the pull request.
    #[arg(required_unless_present = "record")]
    number: Option<u32>,
    /// The output of `proof show --json`; - reads it from the standard input. No server is called.
    #[arg(long, value_name = "FILE", conflicts_with = "number")]
    record: Option<PathBuf>,
    /// HOST/OWNER/NAME.
    #[arg(
        long,
        env = "SIGNALBOX_REPO",
        value_name = "HOST/OWNER/NAME",
        value_parser = RepoName::parse,
        required_unless_present = "record"
    )]
    repo: Option<RepoName>,
    /// The target branch.
    #[arg(long, default_value = "main")]
    branch: String,
    #[command(flatten)]
    server: Server,
}

pub async fn proof(action: Proof) -> Result<(), CliError> {
    match action {
        Proof::Show { number, place } => {
            let entry = place.server.client()?.entry(&place.queue(), number).await?;
            let record = record_of(&entry.value, place.branch())?;
            show(&entry, place.format, |entry| described(entry, &record));
            Ok(())
        }
        Proof::Verify { of, clone, format } => {
            let branch = of.branch.clone();
            verify(&recorded(of).await?, &branch, &clone, format).await
        }
    }
}

async fn recorded(of: Recorded) -> Result<Entry, CliError> {
    if let Some(file) = of.record {
        let text = signalbox_terminal::read(&file);
        let text = text.map_err(|error| CliError::File { file: file.clone(), error })?;
        return serde_json::from_str(&text)
            .map_err(|error| CliError::Record { problem: error.to_string() });
    }
    let (Some(number), Some(name)) = (of.number, of.repo) else {
        // Clap requires both without a file.
        return Err(CliError::Record { problem: "no pull request is named".to_owned() });
    };
    let queue = QueueRef { repo: repo(&name), target_branch: of.branch };
    Ok(of.server.client()?.entry(&queue, number).await?.value)
}

async fn verify(entry: &Entry, branch: &str, clone: &Path, format: Format) -> Result<(), CliError> {
    let record = record_of(entry, branch)?;
    let steps = verify_landing(clone, &record)
        .await
        .map_err(|error| CliError::Clone { clone: clone.to_owned(), problem: error.to_string() })?;
    let number = entry.pr_number;
    let faults = steps.iter().filter(|step| step.fault.is_some()).count();
    if format.is_json() {
        let steps = steps.iter().map(|it| json!({"statement": it.statement, "fault": it.fault}));
        let steps: Vec<_> = steps.collect();
        say_json(&json!({"prNumber": number, "verified": faults == 0, "steps": steps}));
    } else {
        for step in steps {
            say(&match step.fault {
                None => format!("ok    {}", step.statement),
                Some(fault) => format!("FAIL  {}: {fault}", step.statement),
            });
        }
    }
    if faults > 0 {
        return Err(CliError::NotVerified { number, faults });
    }
    if format.is_json() {
        return Ok(());
    }
    let with = match record.proof.changes.len() {
        1 => String::new(),
        many => format!(", together with {}", pull_requests(many - 1)),
    };
    let tested = match (&record.tested_tree, record.proof.exact) {
        (Some(_), true) => "The tested tree landed.",
        (Some(_), false) => {
            "It was merged beside other lanes (PARALLEL mode): its tree as a whole was not tested."
        }
        (None, _) => "The record names no tested tree.",
    };
    say(&format!(
        "Verified: {} is {} with only the changes of #{number}{with}. {tested}",
        record.sha, record.proof.base
    ));
    Ok(())
}

fn pull_requests(count: usize) -> String {
    if count == 1 { "1 other pull request".to_owned() } else { format!("{count} others") }
}

/// The record of a landing in a reply of the server. A reply without a target branch is about the
/// given one.
fn record_of(entry: &Entry, branch: &str) -> Result<LandingRecord, CliError> {
    let number = entry.pr_number;
    let exit = entry.exit.as_ref();
    let (Some(exit), Some(proof)) = (exit, exit.and_then(|exit| exit.proof.as_ref())) else {
        return Err(CliError::NoRecord { number, state: entry.state.to_lowercase() });
    };
    let malformed = |problem: String| CliError::Record { problem };
    let missing = |field: &str| malformed(format!("missing field exit.{field}"));
    let sha = |text: &str| Sha::new(text).map_err(|error| malformed(error.to_string()));
    let tree = |text: &str| TreeId::new(text).map_err(|error| malformed(error.to_string()));
    let changes = proof.changes.iter();
    let changes = changes.map(|it| Ok((PrNumber(it.pr_number), sha(&it.head)?)));
    let method = &proof.merge_method;
    let branch = BranchName::new(entry.pr_base_branch.as_deref().unwrap_or(branch));
    if !proof.changes.iter().any(|it| u64::from(it.pr_number) == number) {
        return Err(malformed(format!("its changes do not contain pull request {number}")));
    }
    Ok(LandingRecord {
        sha: sha(exit.sha.as_deref().ok_or_else(|| missing("sha"))?)?,
        tested_tree: exit.tested_tree.as_deref().map(tree).transpose()?,
        landed_tree: tree(exit.landed_tree.as_deref().ok_or_else(|| missing("landedTree"))?)?,
        branch: branch.map_err(|error| malformed(error.to_string()))?,
        proof: LandingProof {
            base: sha(&proof.base)?,
            changes: changes.collect::<Result<_, CliError>>()?,
            method: MergeMethod::parse(&method.to_uppercase())
                .ok_or_else(|| malformed(format!("unknown merge method {method:?}")))?,
            exact: proof.exact,
            composition: None,
            mismatch: None,
        },
    })
}

fn described(entry: &Entry, record: &LandingRecord) -> String {
    let mut lines = vec![format!("#{} landed as {}", entry.pr_number, record.sha)];
    lines.push(format!("  target before  {}", record.proof.base));
    for (pr, head) in &record.proof.changes {
        lines.push(format!("  with           #{pr} at {head}"));
    }
    lines.push(format!("  merge method   {}", record.proof.method.as_str().to_lowercase()));
    if let Some(tested) = &record.tested_tree {
        lines.push(format!("  tested tree    {tested}"));
    }
    lines.push(format!("  landed tree    {}", record.landed_tree));
    if let Some(proof) = entry.exit.as_ref().and_then(|exit| exit.proof.as_ref()) {
        let why = proof.not_checked_because.as_ref().map(|why| format!(": {why}"));
        let check = proof.check.to_lowercase().replace('_', " ");
        lines.push(format!("  composition    {check}{}", why.unwrap_or_default()));
        lines.extend(proof.merged_by_host.iter().map(|it| format!("  merged by host {it}")));
    }
    lines.join("\n")
}
