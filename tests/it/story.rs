//! The demo, as a new user runs it.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{On, System};

#[tokio::test]
async fn the_demo_exits_and_every_scenario_ends_as_expected() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let folder = system.path("demo").display().to_string();
    let printed = system.run(&["demo", "--once", "--data-dir", &folder]);
    assert!(printed.contains("All scenarios ended as expected."), "{printed}");
    assert!(printed.contains("testing on top of #"), "{printed}");
    assert!(printed.contains("\n  pull requests  18 merged, 5 failed, 1 cancelled\n"), "{printed}");
    assert!(printed.contains("landed tree = tested tree"), "{printed}");
    for cause in ["because CI failed, and not a test", "tests failed that are known to be flaky"] {
        assert!(printed.contains(cause), "{cause}: {printed}");
    }
    for scenario in ["main", "batches", "rescue", "lanes", "urgent", "flaky", "retries"] {
        let mut lines = printed.lines().map(str::trim_start);
        let good = lines.any(|it| it.starts_with(scenario) && it.contains("ended as expected"));
        assert!(good, "{scenario}: {printed}");
    }
}

/// The demo as a running process, killed when the test ends.
struct Demo(Child);

impl Drop for Demo {
    fn drop(&mut self) {
        let _killed = self.0.kill();
        let _ended = self.0.wait();
    }
}

/// The rest of the next line that begins with this text.
fn rest_of(lines: &mut impl Iterator<Item = String>, begins: &str) -> String {
    let found = lines.find_map(|it| it.trim_start().strip_prefix(begins).map(ToOwned::to_owned));
    found.unwrap_or_else(|| panic!("the demo ended without printing {begins:?}"))
}

#[tokio::test]
async fn the_demo_links_to_a_page_that_shows_why_a_pull_request_waits() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let mut command = system.command(&["demo", "--listen", "127.0.0.1:0"]);
    let mut demo = Demo(command.stdout(Stdio::piped()).spawn().expect("the program"));
    let out = demo.0.stdout.take().expect("its output");
    let mut lines = BufReader::new(out).lines().map_while(Result::ok);
    let token = rest_of(&mut lines, "token   ");
    let waits = lines.find(|it| it.contains(" waits: http://")).expect("one that waits");
    let page = waits.split_once(": ").expect("its address").1.to_owned();
    let gate = rest_of(&mut lines, "touch ");
    // The rest of the output is drained, so that the demo does not block on a full pipe.
    let _rest = std::thread::spawn(move || lines.for_each(drop));
    let http =
        reqwest::Client::builder().timeout(Duration::from_secs(10)).build().expect("a client");
    let look = async || {
        let reply = http.get(&page).header("x-api-token", &token).send().await.expect("a reply");
        assert_eq!(reply.status(), 200, "{page}");
        reply.text().await.expect("a page")
    };
    let shown = look().await;
    for words in ["<div class=\"answer ", "class=\"next\"", "2 pull requests are ahead"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    std::fs::write(&gate, "").expect("the gate");
    let end = Instant::now() + Duration::from_mins(1);
    while !look().await.contains("Merged ") {
        assert!(Instant::now() < end, "it was not merged after the gate had opened");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
