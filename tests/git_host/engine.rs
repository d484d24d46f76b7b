//! Checks in containers of an engine that is reached by its API: a service of Podman.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use signalbox_sandbox::{Ended, JobFolder, NotRun, Output, Ran, SandboxSettings};
use signalbox_tests::containers::{Image, Service, left, podman, text};
use signalbox_tests::{free_port, not_tested};
use tempfile::TempDir;
use tokio::sync::watch;

use crate::containers::{Place, a_check_is_isolated_and_ends, job, settings};

fn with_host(image: &Image, host: String) -> SandboxSettings {
    SandboxSettings { container_host: host, ..settings(image) }
}

/// A program of a container is running: it has printed something.
async fn until_it_prints(output: &Output) {
    while output.is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_run_by_the_api_of_an_engine_and_leave_nothing_there() {
    let Some(image) = Image::new("engine", &[]) else {
        not_tested("Podman does not run containers here");
        return;
    };
    let volumes = podman(&["volume", "ls", "--quiet", "--filter", "dangling=true"]).expect("asked");
    let mut service = Service::start().await;
    let place = Place::new(with_host(&image, service.host()));
    std::fs::create_dir_all(place.jobs()).expect("made");
    place.sandbox.sweep(&place.jobs());
    let ready = place.sandbox.ready().await.expect("it is ready");
    let by = format!("containers of the engine at {}", service.host());
    assert_eq!((ready.by, ready.network), (by, false));
    let label = place.label();
    assert!(!label.ends_with("=none"), "{label}");
    a_check_is_isolated_and_ends(&place).await;

    // What is sent is what the check finds: modes, links, its own user.
    let folder = JobFolder::new(&place.jobs().join("2-0")).expect("a folder");
    let checkout = folder.checkout();
    std::fs::write(checkout.join("run"), "#!/usr/bin/sh\necho \"it ran\"\n").expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(checkout.join("run"), mode).expect("set");
    std::os::unix::fs::symlink("run", checkout.join("link")).expect("a link");
    std::fs::create_dir_all(checkout.join("a/b")).expect("made");
    std::fs::write(checkout.join("a/b/deep"), vec![b'x'; 3_000_000]).expect("written");
    let script = "./link; head -c 3 a/b/deep; : > a/b/deep && echo; echo '<r/>' > a/r.xml; \
                  ln -s /etc/passwd l.xml; exec > /dev/null 2>&1; sleep 0.1; exit 5";
    let mut job = job(&["sh", "-c", script], Duration::from_mins(1));
    let patterns = ["a/**/r.xml", "*.xml", "none/*.xml", "link/*.xml"];
    job.reports = patterns.map(ToOwned::to_owned).to_vec();
    let (_never, mut stopped) = watch::channel(false);
    let output = Output::default();
    let ran = place.sandbox.run(job, &folder, &mut stopped, &output).await;
    let output = output.into_text();
    let ran = ran.unwrap_or_else(|error| panic!("{error:?}: {output}"));
    assert_eq!(output, "it ran\nxxx\n");
    let Ended::Exited(status) = ran.ended else { panic!("{:?}", ran.ended) };
    assert_eq!(status.code(), Some(5), "also when it prints to nothing");
    let names: Vec<&str> = ran.reports.files.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["a/r.xml"], "a link leads nowhere");
    folder.clear().await;

    // Its result is not wanted any more; and its caller is gone.
    for is_stopped in [true, false] {
        let folder = JobFolder::new(&place.jobs().join("3-0")).expect("a folder");
        let (stop, mut stopped) = watch::channel(false);
        let output = Output::default();
        let script = "echo begun; sleep 1000";
        let job = crate::containers::job(&["sh", "-c", script], Duration::from_mins(9));
        let run = place.sandbox.run(job, &folder, &mut stopped, &output);
        let begun = async {
            until_it_prints(&output).await;
            if is_stopped {
                stop.send(true).expect("it listens");
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            ran = run => assert!(matches!(ran, Ok(Ran { ended: Ended::Stopped, .. }))),
            () = begun => assert!(!is_stopped),
        }
        tokio::time::timeout(Duration::from_secs(30), async {
            while !left(&label).is_empty() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await
        .expect("it is removed");
    }

    // An engine that ends while a check runs: the check has no result, and its container is removed
    // when there is an engine again.
    let folder = JobFolder::new(&place.jobs().join("4-0")).expect("a folder");
    let (_never, mut stopped) = watch::channel(false);
    let output = Output::default();
    let job =
        crate::containers::job(&["sh", "-c", "echo begun; sleep 1000"], Duration::from_mins(9));
    let run = place.sandbox.run(job, &folder, &mut stopped, &output);
    let end = async {
        until_it_prints(&output).await;
        service.end();
    };
    let (ran, ()) = tokio::join!(run, end);
    let Err(NotRun::Machine(error)) = ran.map(|ran| ran.ended) else { panic!("a result") };
    assert!(error.to_string().starts_with("the container engine at unix://"), "{error}");
    assert_ne!(left(&label), "", "its container is still there");
    let refused = place.sandbox.ready().await.expect_err("no engine").to_string();
    assert!(refused.contains("the container engine at unix://"), "{refused}");
    service.again().await;
    place.sandbox.ready().await.expect("it is ready");
    assert_eq!(left(&label), "");
    folder.clear().await;

    // A server that is gone: the next process of the same place removes what it left, and nothing of
    // another.
    let other = "signalbox.place=another";
    for label in [label.as_str(), other] {
        let run = image.run(&["--detach", "--label", label], &["/usr/bin/sleep", "1000"]);
        assert!(podman(&run).expect("podman").status.success());
    }
    let place = place.restarted();
    place.sandbox.sweep(&place.jobs());
    assert_ne!(left(&label), "", "not before the engine is known to work");
    place.sandbox.ready().await.expect("it is ready");
    assert_eq!(left(&label), "");
    assert_ne!(left(other), "");
    drop(podman(&["rm", "--force", left(other).trim()]));
    let now = podman(&["volume", "ls", "--quiet", "--filter", "dangling=true"]).expect("asked");
    assert_eq!(text(&now), text(&volumes), "no volume is left");

    // An image that is not there.
    let missing = "localhost/signalbox-engine:missing".to_owned();
    let place = Place::new(SandboxSettings { container_image: missing, ..place.settings });
    let refused = place.sandbox.ready().await.expect_err("no image").to_string();
    assert!(refused.ends_with("has no image localhost/signalbox-engine:missing: pull it there"));
}

/// Keys of an engine and of a server, signed by an authority of their own, in this folder.
fn keys(folder: &Path) {
    let openssl = |arguments: &str| {
        let mut command = Command::new("openssl");
        let done = command.args(arguments.split(' ')).current_dir(folder).output();
        let done = done.expect("openssl can be run");
        assert!(done.status.success(), "{arguments}: {done:?}");
    };
    let new = "-newkey rsa:2048 -nodes -days 2";
    openssl(&format!("req -x509 {new} -subj /CN=authority -keyout ca-key.pem -out ca.pem"));
    std::fs::write(folder.join("names"), "subjectAltName=IP:127.0.0.1\n").expect("written");
    for name in ["engine", "server"] {
        openssl(&format!("req {new} -subj /CN={name} -keyout {name}-key.pem -out {name}.csr"));
        openssl(&format!(
            "x509 -req -days 2 -in {name}.csr -CA ca.pem -CAkey ca-key.pem -CAcreateserial \
             -extfile names -out {name}.pem"
        ));
    }
}

/// An nginx before an engine, which serves only clients with a key of the authority.
fn nginx(folder: &Path, port: u16, engine: &Path) -> Option<Child> {
    let program = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"];
    let program = program.iter().find(|it| Path::new(it).exists())?;
    let here = folder.display();
    let user = if signalbox_tests::is_root() { "user root;\n" } else { "" };
    let config = format!(
        "{user}daemon off; pid {here}/nginx.pid; error_log {here}/error.log; events {{}}\n\
         http {{ access_log off; client_body_temp_path {here}/body; proxy_temp_path {here}/proxy;\n\
         fastcgi_temp_path {here}/f; uwsgi_temp_path {here}/u; scgi_temp_path {here}/s;\n\
         server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {here}/engine.pem;\n\
         ssl_certificate_key {here}/engine-key.pem; ssl_client_certificate {here}/ca.pem;\n\
         ssl_verify_client on; client_max_body_size 0;\n\
         location / {{ proxy_pass http://unix:{}; proxy_http_version 1.1; proxy_buffering off;\n\
         proxy_request_buffering off; proxy_read_timeout 1h; }} }} }}\n",
        engine.display()
    );
    let file = folder.join("nginx.conf");
    std::fs::write(&file, config).expect("written");
    let mut command = Command::new(program);
    Some(command.arg("-c").arg(&file).stdin(Stdio::null()).spawn().expect("nginx"))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_of_another_machine_is_reached_with_keys_of_both() {
    let Some(image) = Image::new("remote", &[]) else {
        not_tested("Podman does not run containers here");
        return;
    };
    let service = Service::start().await;
    let folder = TempDir::new().expect("a folder");
    keys(folder.path());
    let port = free_port();
    let Some(mut nginx) = nginx(folder.path(), port, &service.socket()) else {
        not_tested("nginx is not installed");
        return;
    };
    let tls = folder.path().join("tls");
    std::fs::create_dir(&tls).expect("made");
    let copy = |from: &str, to: &str| {
        std::fs::copy(folder.path().join(from), tls.join(to)).expect("copied");
    };
    copy("ca.pem", "ca.pem");
    copy("server.pem", "cert.pem");
    copy("server-key.pem", "key.pem");
    tokio::time::timeout(Duration::from_secs(30), async {
        while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("nginx listens");
    let host = format!("tcp://127.0.0.1:{port}");
    let settings = SandboxSettings { container_tls: tls.clone(), ..with_host(&image, host) };
    let place = Place::new(settings.clone());
    place.sandbox.ready().await.expect("it is ready");
    let (ended, text) = place.sh("echo over the network; exit 4").await;
    let Ended::Exited(status) = ended else { panic!("{ended:?}") };
    assert_eq!((status.code(), text.as_str()), (Some(4), "over the network\n"));

    // Another authority's engine is not trusted with a checkout.
    let other = TempDir::new().expect("a folder");
    keys(other.path());
    std::fs::copy(other.path().join("ca.pem"), tls.join("ca.pem")).expect("copied");
    let refused =
        Place::new(settings.clone()).sandbox.ready().await.expect_err("another authority");
    assert!(refused.to_string().contains("certificate"), "{refused}");
    std::fs::remove_file(tls.join("key.pem")).expect("removed");
    copy("ca.pem", "ca.pem");
    let refused = Place::new(settings).sandbox.ready().await.expect_err("no key").to_string();
    assert!(refused.starts_with("checks are refused: the container engine at tcp://"), "{refused}");
    drop(Command::new("kill").arg(nginx.id().to_string()).status());
    drop(nginx.wait());
}
