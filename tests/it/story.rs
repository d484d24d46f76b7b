//! The demo, as a newcomer runs it.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{On, System};

#[tokio::test]
async fn the_demo_ends_by_itself_and_as_it_should() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let folder = system.path("demo").display().to_string();
    let told = system.run(&["demo", "--once", "--data-dir", &folder]);
    assert!(told.contains("Everything ended as it should."), "{told}");
    assert!(told.contains("landed tree = tested tree"), "{told}");
    for chapter in ["main", "batches", "rescue", "lanes", "urgent", "flaky"] {
        let mut lines = told.lines().map(str::trim_start);
        let good = lines.any(|it| it.starts_with(chapter) && it.contains("ended as it should"));
        assert!(good, "{chapter}: {told}");
    }
}

/// The demo while it is looked at. It is killed with the test.
struct Looking(Child);

impl Drop for Looking {
    fn drop(&mut self) {
        let _killed = self.0.kill();
        let _ended = self.0.wait();
    }
}

/// The rest of the line that begins like this, of those that follow.
fn told(lines: &mut impl Iterator<Item = String>, begins: &str) -> String {
    let found = lines.find_map(|it| it.trim_start().strip_prefix(begins).map(ToOwned::to_owned));
    found.unwrap_or_else(|| panic!("the demo ended without saying {begins:?}"))
}

#[tokio::test]
async fn the_demo_says_where_a_page_tells_why_somebody_waits() {
    let system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let mut command = system.command(&["demo", "--listen", "127.0.0.1:0"]);
    let mut looking = Looking(command.stdout(Stdio::piped()).spawn().expect("the program"));
    let out = looking.0.stdout.take().expect("what it says");
    let mut lines = BufReader::new(out).lines().map_while(Result::ok);
    let token = told(&mut lines, "token   ");
    let waits = lines.find(|it| it.contains(" waits: http://")).expect("one that waits");
    let page = waits.split_once(": ").expect("its address").1.to_owned();
    let gate = told(&mut lines, "touch ");
    // Nobody reads what follows; the demo goes on all the same.
    let _rest = std::thread::spawn(move || lines.for_each(drop));
    let http =
        reqwest::Client::builder().timeout(Duration::from_secs(10)).build().expect("a client");
    let look = async || {
        let asked = http.get(&page).header("x-api-token", &token).send().await.expect("a reply");
        assert_eq!(asked.status(), 200, "{page}");
        asked.text().await.expect("a page")
    };
    let shown = look().await;
    for words in ["Waiting because: ", "class=\"next\"", "2 pull requests are ahead"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    std::fs::write(&gate, "").expect("the gate");
    let end = Instant::now() + Duration::from_mins(1);
    while !look().await.contains("Merged ") {
        assert!(Instant::now() < end, "it was not merged after the gate had opened");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
