//! The page of a queue, from the release program: how long a browser waits for it, and how much it
//! fetches the first time.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use async_trait::async_trait;
use signalbox_domain::ids::BranchName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::Operation;
use crate::database::{Fresh, On};
use crate::failure::{During, Failure};
use crate::load::{Client, Request};
use crate::measure::{Turns, percentile};
use crate::process::{Running, program};
use crate::product::Product;
use crate::report::{Report, Row, count};
use crate::seed;
use crate::servers;
use crate::setup::Setup;

/// Live entries of the queue, requests, and the milliseconds that 95 of 100 may take.
const SIZES: [(usize, usize, f64); 3] = [(50, 300, 2.0), (500, 300, 5.0), (5_000, 100, 5.0)];
/// Pull requests that a page shows at most.
const SHOWN: usize = 100;
/// KiB of the first visit.
const FIRST_VISIT_GOAL: f64 = 120.0;

/// The page of a queue.
pub(crate) struct Pages;

#[async_trait(?Send)]
impl Operation for Pages {
    fn name(&self) -> &'static str {
        "pages"
    }

    async fn run(&self, setup: &Setup, report: &mut Report) -> Result<(), Failure> {
        let Some(program) = program()? else {
            report.note("pages: skipped, there is no release program.".to_owned());
            return Ok(());
        };
        for on in On::ALL {
            for (size, requests, goal) in setup.sizes(&SIZES) {
                let fresh = Fresh::new(setup, on).await?;
                let product = Product::on(&fresh.database).await?;
                let branch = BranchName::new("main").during("a branch")?;
                let queue = seed::queue(&product, &branch).await?;
                seed::submit(&product, queue, *size).await?;
                let folder = setup.folder()?;
                let server = Running::start(&program, folder.path(), &fresh.url).await?;
                let data = format!("{}, {} entries", on.name(), count(*size));
                let cookie = sign_in(server.address, &product.token).await?;
                let repo = product.repository.name.to_string();
                let path = format!("/acme/queue?repo={}&branch=main", repo.replace('/', "%2F"));
                let page = get(server.address, &path, &cookie, "").await?;
                let rows = page.body.matches("<tr role=\"row\" id=").count();
                if rows < (*size).min(SHOWN) {
                    return Err(Failure::new("the page", format!("shows {rows} pull requests")));
                }
                let asked = request(&path, &cookie, PACKED);
                let floor = servers::bytes(page.body.clone().into_bytes())?;
                let mut client = Client::to(server.address).await?;
                let mut bare = Client::to(floor.address).await?;
                let many = setup.many(*requests);
                let mut turns = Turns::default();
                for _ in 0..setup.rounds {
                    turns.floor.push(slowest(&mut bare, &request("/", "", ""), many).await?);
                    turns.product.push(slowest(&mut client, &asked, many).await?);
                }
                floor.stop().await;
                let row = Row::against("page of a queue, p95", data.clone(), &turns);
                let millis = row.product() / 1e3;
                report.add(row.with_goal(&format!("≤ {goal} ms"), millis <= *goal));
                let kibibytes = cold(server.address, &path, &cookie, &page.body).await?;
                let row = Row::of("page of a queue, first visit", data, kibibytes, "KiB");
                let goal = format!("≤ {FIRST_VISIT_GOAL} KiB");
                report.add(row.with_goal(&goal, kibibytes <= FIRST_VISIT_GOAL));
            }
        }
        Ok(())
    }
}

/// The cost that 95 of 100 requests do not exceed, in microseconds.
async fn slowest(client: &mut Client, asked: &Request, times: usize) -> Result<f64, Failure> {
    let mut costs = Vec::with_capacity(times);
    for _ in 0..times {
        costs.push(client.repeat(asked, 1).await?.as_secs_f64() * 1e6);
    }
    Ok(percentile(&mut costs, 95))
}

fn request(path: &str, cookie: &str, more: &str) -> Request {
    let cookie = if cookie.is_empty() { String::new() } else { format!("cookie: {cookie}\r\n") };
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{cookie}{more}\r\n").into_bytes().into()
}

/// A reply as it came.
struct Reply {
    head: String,
    body: String,
    bytes: usize,
}

async fn exchange(address: SocketAddr, request: &[u8]) -> Result<Reply, Failure> {
    let mut stream = TcpStream::connect(address).await.during("a connection")?;
    stream.write_all(request).await.during("a request")?;
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).await.during("a reply")?;
    let text = String::from_utf8_lossy(&reply).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    Ok(Reply { head: head.to_owned(), body: body.to_owned(), bytes: reply.len() })
}

/// The encodings that a browser accepts.
const PACKED: &str = "accept-encoding: gzip, br\r\n";

/// A page or a part of one.
async fn get(
    address: SocketAddr,
    path: &str,
    cookie: &str,
    encoding: &str,
) -> Result<Reply, Failure> {
    let more = format!("connection: close\r\n{encoding}");
    let reply = exchange(address, &request(path, cookie, &more)).await?;
    if reply.head.starts_with("HTTP/1.1 200") {
        return Ok(reply);
    }
    Err(Failure::new(path, reply.head))
}

/// Exchanges the token for the cookie of a session.
async fn sign_in(address: SocketAddr, token: &str) -> Result<String, Failure> {
    let body = format!("token={token}");
    let request = format!(
        "POST /sign-in HTTP/1.1\r\nhost: localhost\r\norigin: http://localhost\r\n\
         content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    );
    let reply = exchange(address, request.as_bytes()).await?;
    let cookie = reply.head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("set-cookie").then(|| value.split(';').next())?
    });
    cookie.map(ToOwned::to_owned).ok_or_else(|| Failure::new("signing in", reply.head.clone()))
}

/// KiB of the page and of its assets.
async fn cold(address: SocketAddr, path: &str, cookie: &str, page: &str) -> Result<f64, Failure> {
    let mut parts = BTreeSet::new();
    for mark in ["src=\"/", "href=\"/"] {
        for (at, _) in page.match_indices(mark) {
            let rest = page.get(at + mark.len() - 1..).unwrap_or_default();
            let asset = rest.split('"').next().unwrap_or_default();
            if asset.starts_with("/assets/") {
                parts.insert(asset.to_owned());
            }
        }
    }
    let mut bytes = get(address, path, cookie, PACKED).await?.bytes;
    for part in &parts {
        bytes += get(address, part, cookie, PACKED).await?.bytes;
    }
    Ok(f64::from(u32::try_from(bytes).unwrap_or(u32::MAX)) / 1024.0)
}
