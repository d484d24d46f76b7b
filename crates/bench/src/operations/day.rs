//! A day of a repository from end to end: pull requests on a bare repository are submitted, tested by a
//! check that only succeeds, and merged by the release program.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::{Value, json};
use signalbox_domain::ids::BranchName;
use signalbox_domain::ports::Repository;
use signalbox_git::{HostConfig, OpenRequest, PlainGitHost};

use super::Operation;
use crate::bare::Repo;
use crate::database::{Fresh, On};
use crate::failure::{During, Failure};
use crate::load::{self, Client, Request};
use crate::parts::SystemClock;
use crate::process::{Running, program};
use crate::product::Product;
use crate::report::{Report, Row, count};
use crate::setup::Setup;

/// Pull requests, and files of the repository.
const SIZES: (usize, usize) = (500, 2_000);
/// Test runs at a time; the host's checks in [`CONFIG`] allow as many.
const SLOTS: u32 = 10;
/// How often the queue is read until it is empty, and for how long.
const POLL: (Duration, Duration) = (Duration::from_millis(200), Duration::from_mins(20));
/// How long PostgreSQL may take to count what its sessions have written: an idle one counts after ten seconds.
const COUNTED: Duration = Duration::from_secs(12);
/// Rows that were written in PostgreSQL.
const WRITTEN: &str = "SELECT SUM(n_tup_ins + n_tup_upd + n_tup_del)::bigint AS number \
    FROM pg_stat_user_tables";
/// The server's configuration: the host of the repository.
const CONFIG: &str = "[[organizations]]\nslug = \"acme\"\n\n[[organizations.hosts]]\n\
    kind = \"git\"\nhost = \"git.local\"\n\n[organizations.hosts.checks]\nconcurrency = 10\n";

/// A day from end to end.
pub(crate) struct Day;

#[async_trait(?Send)]
impl Operation for Day {
    fn name(&self) -> &'static str {
        "day"
    }

    async fn run(&self, setup: &Setup, report: &mut Report) -> Result<(), Failure> {
        let Some(program) = program()? else {
            report.note("day: skipped, there is no release program.".to_owned());
            return Ok(());
        };
        let many = setup.many(SIZES.0);
        for on in On::ALL {
            let fresh = Fresh::new(setup, on).await?;
            let product = Product::on(&fresh.database).await?;
            let folder = setup.folder()?;
            let repo = Repo::new(folder.path(), SIZES.1, many)?;
            let name = repo.registered(product.org.id)?;
            let registered = product.stores.account.repos.register(&name, false).await;
            let repository = registered.during("a repository")?;
            let prs = open(&product, &repository, many).await?;
            std::fs::write(folder.path().join("signalbox.toml"), CONFIG).during("a file")?;
            let config = folder.path().join("signalbox.toml").display().to_string();
            let environment = [
                ("SIGNALBOX_CONFIG", config.as_str()),
                ("SIGNALBOX_SANDBOX__UNSAFE_LOCAL", "true"),
            ];
            let server =
                Running::start_with(&program, folder.path(), &fresh.url, &environment).await?;
            let calls = Calls { repository: &repository, token: &product.token };
            let settings = json!({ "mode": "single", "concurrency": SLOTS });
            let create = calls.post("createQueue", &settings);
            Client::to(server.address).await?.one(&create).await?;
            let rows = written(&fresh).await?;
            // The server closes connections that were idle while rows were counted.
            let mut client = Client::to(server.address).await?;
            let (cpu, begun) = (server.cpu()?, Instant::now());
            let submit = |pr: &u32| calls.post("submitPullRequest", &json!({"pr": {"number": pr}}));
            client.all(&prs.iter().map(submit).collect::<Vec<_>>()).await?;
            emptied(&mut client, &calls).await?;
            let took = begun.elapsed().as_secs_f64();
            let merges = f64::from(u32::try_from(many).unwrap_or(u32::MAX));
            let cpu = (server.cpu()? - cpu) / merges;
            let landed = repo.git(&["rev-list", "--count", "--first-parent", "main"], None)?;
            // The repository began with two commits.
            if landed != (many + 2).to_string() {
                let words = format!("has {landed} commits, not {}", many + 2);
                return Err(Failure::new("the target branch", words));
            }
            let data = format!("{}, {} pull requests, {SLOTS} slots", on.name(), count(many));
            report.add(Row::of(
                "day",
                format!("{data}: merges"),
                merges * 3_600.0 / took,
                "an hour",
            ));
            report.add(Row::of("day", format!("{data}: CPU for a merge"), cpu * 1e3, "ms"));
            if let (Some(before), Some(after)) = (rows, written(&fresh).await?) {
                let each = (after - before) / merges;
                report.add(Row::of(
                    "day",
                    format!("{data}: rows written for a merge"),
                    each,
                    "rows",
                ));
            }
            let peak = server.memory()?.peak;
            report.add(Row::of("day", format!("{data}: memory, at most"), peak, "MiB"));
        }
        Ok(())
    }
}

/// Opens a pull request for each branch; their numbers.
async fn open(
    product: &Product,
    repository: &Repository,
    many: usize,
) -> Result<Vec<u32>, Failure> {
    let host = PlainGitHost::new(
        HostConfig { root: None, public_url: "http://localhost".to_owned() },
        product.stores.host.pull_requests.clone(),
        Arc::new(SystemClock),
    );
    let mut numbers = Vec::new();
    for number in 0..many {
        let branch = |name: &str| BranchName::new(name).during("a branch");
        let request = OpenRequest {
            branch: branch(&format!("change-{number}"))?,
            target: branch("main")?,
            title: None,
            body: None,
            author: Some("ada".to_owned()),
        };
        let opened = host.open_pull_request(repository, request).await;
        numbers.push(opened.during("a pull request")?.number.0);
    }
    Ok(numbers)
}

/// Requests about the queue of the target.
struct Calls<'a> {
    repository: &'a Repository,
    token: &'a str,
}

impl Calls<'_> {
    fn post(&self, operation: &str, more: &Value) -> Request {
        let name = &self.repository.name;
        let mut body = json!({
            "repo": {"host": name.host.as_str(), "owner": name.owner.as_str(),
                "name": name.name.as_str()},
            "targetBranch": "main"
        });
        if let (Some(body), Some(more)) = (body.as_object_mut(), more.as_object()) {
            body.extend(more.clone());
        }
        load::post(&format!("/v1/{operation}"), self.token, &body)
    }
}

/// Waits until nothing is in the queue.
async fn emptied(client: &mut Client, calls: &Calls<'_>) -> Result<(), Failure> {
    let begun = Instant::now();
    let request = calls.post("getQueue", &json!({}));
    while begun.elapsed() < POLL.1 {
        let reply = client.one(&request).await?;
        let queue: Value = serde_json::from_slice(&reply).during("a queue")?;
        if queue["enqueuedPullRequests"].as_array().is_some_and(Vec::is_empty) {
            return Ok(());
        }
        tokio::time::sleep(POLL.0).await;
    }
    Err(Failure::new("the queue", "is not empty after twenty minutes"))
}

/// Rows that were written so far; `None` where the database does not count them.
async fn written(fresh: &Fresh) -> Result<Option<f64>, Failure> {
    if fresh.on == On::Sqlite {
        return Ok(None);
    }
    tokio::time::sleep(COUNTED).await;
    fresh.floor.number(WRITTEN).await.map(Some)
}
