//! The agent: what comes back of a job, who may give it one, and how jobs end early.

use std::time::Duration;

use signalbox_sandbox::{
    Agent, Ended, Job, JobFolder, LocalSandbox, NotRun, Output, Ran, SandboxSettings,
};
use tempfile::TempDir;
use tokio::sync::watch;

use crate::checks::program;
use crate::sandbox::{Kind, Place, code, endless, is_running, works_here};

/// A folder with a checkout, a job of a script, and what the agent did with it.
async fn run_by_agent(
    place: &Place,
    script: &str,
    mut stopped: watch::Receiver<bool>,
) -> (Result<Ran, NotRun>, String) {
    let folder = JobFolder::new(&place.folder.path().join("jobs/1")).expect("a folder");
    std::fs::write(folder.checkout().join("old.xml"), "<old/>").expect("written");
    let job = Job {
        run: ["sh", "-c", script].map(ToOwned::to_owned).to_vec(),
        environment: vec![("PASSED".into(), "passed".into())],
        time: Duration::from_mins(1),
        hidden: Vec::new(),
        reports: vec!["*.xml".to_owned()],
    };
    let output = Output::default();
    let ran = place.sandbox.run(job, &folder, &mut stopped, &output).await;
    folder.clear().await;
    (ran, output.into_text())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_returns_what_a_check_printed_and_left() {
    if !works_here() {
        return;
    }
    let place = Place::new(Kind::Agent, SandboxSettings::default());
    let ready = place.sandbox.ready().await.expect("it is ready");
    assert!(ready.by.starts_with("bubblewrap, by the agent of user "), "{}", ready.by);
    let (_never, stopped) = watch::channel(false);
    let large = "head -c 3000000 /dev/zero | tr '\\0' x";
    let script = format!("echo $PASSED; ls; {large} > new.xml; {large}; echo; exit 3");
    let (ran, text) = run_by_agent(&place, &script, stopped).await;
    assert!(text.starts_with("passed\nold.xml\n") && text.ends_with("x\n"));
    let ran = ran.expect("it ran");
    assert_eq!(code(&Ok(ran.ended)), Some(3));
    let mut read = Vec::new();
    for mut file in ran.reports.files {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut file.content, &mut bytes).expect("read");
        read.push((file.name, bytes.len()));
    }
    assert_eq!(read, [("new.xml".to_owned(), 3_000_000), ("old.xml".to_owned(), 6)]);
    assert_eq!((ran.reports.omitted, ran.reports.old), (0, 1));
    assert!(place.is_clean());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_ends_a_check_that_is_not_wanted_and_one_that_it_cannot_finish() {
    if !works_here() {
        return;
    }
    let mut place = Place::new(Kind::Agent, SandboxSettings::default());
    let sleep = endless();
    let running = async || {
        while !is_running(&sleep) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let (stop, stopped) = watch::channel(false);
    let (ran, ()) = tokio::join!(run_by_agent(&place, &sleep, stopped), async {
        running().await;
        stop.send_replace(true);
    });
    assert!(matches!(ran.0, Ok(Ran { ended: Ended::Stopped, .. })));
    assert!(!is_running(&sleep) && place.is_clean());

    let (agent, stop_agent) = place.agent.take().expect("an agent");
    let (_never, stopped) = watch::channel(false);
    let (ran, ()) = tokio::join!(run_by_agent(&place, &sleep, stopped), async {
        running().await;
        stop_agent.notify_one();
    });
    let words = ran.0.err().map(|error| format!("{error:?}")).unwrap_or_default();
    assert!(words.contains("the agent was stopped"), "it is run again elsewhere: {words}");
    agent.await.expect("it ends");
    assert!(!is_running(&sleep) && place.is_clean());
    let refused = place.sandbox.ready().await.expect_err("there is no agent").to_string();
    assert!(refused.contains("agent.sock does not answer"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_runs_nothing_for_other_users_and_versions() {
    use std::io::{Read as _, Write as _};
    let local = || LocalSandbox::new(SandboxSettings::default(), program(), Vec::new());
    let own = rustix::process::geteuid().as_raw();
    let folder = TempDir::new().expect("a folder");
    let place = Place::with_agent(folder, local(), own + 1);
    let refused = place.sandbox.ready().await.expect_err("another user").to_string();
    assert!(refused.contains(&format!("does not run checks for user {own}")), "{refused}");
    let (_never, stopped) = watch::channel(false);
    let (ran, text) = run_by_agent(&place, "echo ran", stopped).await;
    assert!(matches!(ran, Err(NotRun::Machine(_))) && text.is_empty(), "{text}");

    let place = Place::with_agent(TempDir::new().expect("a folder"), local(), own);
    let socket = place.folder.path().join("agent.sock");
    let taken = Agent::listen(&socket).expect_err("an agent listens there");
    assert_eq!(taken.kind(), std::io::ErrorKind::AddrInUse);
    let asked = tokio::task::spawn_blocking(move || {
        let mut stream = std::os::unix::net::UnixStream::connect(socket).expect("connected");
        let request = br#"{"protocol":999,"wish":1}"#;
        stream.write_all(b"r\0\0\0\x19").expect("sent");
        stream.write_all(request).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    });
    let answer = asked.await.expect("asked");
    assert!(answer.contains("run the same version of Signalbox"), "{answer}");
}
