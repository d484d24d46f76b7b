//! Behind nginx: with its defaults, and with what `docs/operations/install.md` shows. Pages and
//! followers of events get news while their stream is open, and large uploads pass.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use futures_util::StreamExt;
use signalbox_tests::{free_port, not_tested};

use crate::handbook::block;
use crate::harness::{On, Pieces, System};
use crate::strangers::sign_in_at;

/// Only what nginx needs.
const DEFAULTS: &str =
    "server {\n    listen 443;\n    location / { proxy_pass http://127.0.0.1:8080; }\n}\n";

/// A running nginx.
struct Nginx(Child);

impl Drop for Nginx {
    fn drop(&mut self) {
        drop(Command::new("kill").arg(self.0.id().to_string()).status());
        drop(self.0.wait());
    }
}

/// A certificate of its own for this machine.
fn certificate(folder: &Path) {
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
        ])
        .args(["-keyout", "privkey.pem", "-out", "fullchain.pem"])
        .current_dir(folder)
        .output()
        .expect("openssl can be run");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// Starts nginx on that port before that server. `None` where it is not installed.
fn nginx(site: &str, folder: &Path, port: u16, server: &str) -> Option<Nginx> {
    let program = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"];
    let Some(program) = program.iter().find(|it| Path::new(it).exists()) else {
        not_tested("nginx is not installed");
        return None;
    };
    let site = site
        .replace("listen 443", &format!("listen 127.0.0.1:{port}"))
        .replace("http://127.0.0.1:8080", server)
        .replace("/etc/ssl/signalbox", &folder.display().to_string())
        .replace("/var/log/nginx", &folder.display().to_string());
    let own = |name: &str| format!("{name}_temp_path {}/{name};\n", folder.display());
    let own: String =
        ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].into_iter().map(own).collect();
    let user = if signalbox_tests::is_root() { "user root;\n" } else { "" };
    let config = format!(
        "{user}daemon off;\npid {0}/nginx.pid;\nerror_log {0}/error.log;\nevents {{}}\n\
         http {{\naccess_log off;\n{own}{site}}}\n",
        folder.display()
    );
    let file = folder.join("nginx.conf");
    std::fs::write(&file, config).expect("written");
    let command = |arguments: &[&str]| {
        let mut command = Command::new(program);
        command.arg("-c").arg(&file).args(arguments).stdin(Stdio::null());
        command
    };
    let tested = command(&["-t"]).output().expect("run");
    assert!(tested.status.success(), "{}", String::from_utf8_lossy(&tested.stderr));
    Some(Nginx(command(&[]).spawn().expect("nginx")))
}

/// Reads until this comes.
async fn until(stream: &mut Pieces, what: &str) -> String {
    let mut text = String::new();
    while !text.contains(what) {
        let piece = tokio::time::timeout(Duration::from_mins(1), stream.next()).await;
        let piece = piece.unwrap_or_else(|_| panic!("{what} does not come after {text:?}"));
        text += &String::from_utf8_lossy(&piece.expect("no end").expect("a piece"));
    }
    text
}

fn pieces(reply: reqwest::Response) -> Pieces {
    let reply = reply.error_for_status().expect("a stream");
    Box::pin(reply.bytes_stream().map(|piece| piece.map(|it| it.to_vec())))
}

async fn works_behind(site: &str, scheme: &str) {
    let mut system = System::new(On::Sqlite, "exit 0\n", 1).await;
    let (port, folder) = (free_port(), system.path("nginx"));
    let public = format!("{scheme}://127.0.0.1:{port}");
    system.terminate();
    let config =
        format!("[server]\npublic_url = \"{public}\"\ntrusted_proxies = [\"127.0.0.1/32\"]\n");
    std::fs::write(system.path("signalbox.toml"), config).expect("written");
    system.start().await;
    std::fs::create_dir(&folder).expect("a folder");
    certificate(&folder);
    let Some(_nginx) = nginx(site, &folder, port, &system.url()) else { return };
    let client = reqwest::Client::builder()
        .danger_accept_invalid_certs(true)
        .redirect(reqwest::redirect::Policy::none())
        .timeout(Duration::from_mins(2))
        .build()
        .expect("a client");
    let answers = async |_: &System| {
        let reply = client.get(format!("{public}/readyz")).send().await;
        reply.is_ok_and(|it| it.status() == 200)
    };
    system.until("nginx answers", answers).await;

    let ready = client.get(format!("{public}/readyz")).send().await.expect("a reply");
    let has_rule = ready.headers().contains_key("strict-transport-security");
    assert_eq!(has_rule, scheme == "https", "only an https address may promise https");

    let (status, cookie) = sign_in_at(&public, &client, system.token()).await;
    assert_eq!(status, 303, "signed in");
    let live = client.get(format!("{public}/ui/events?topics=org")).header("cookie", &cookie);
    let mut live = pieces(live.send().await.expect("a reply"));
    until(&mut live, "hello").await;
    let events = client.get(format!("{public}/v1/events/stream"));
    let events = events.header("x-api-token", system.token());
    let mut events = pieces(events.send().await.expect("a reply"));
    until(&mut events, "retry: 1000").await;

    let pr = system.pull_request("change", &[("change.txt", "1\n")]);
    system.submit(pr).await;
    until(&mut live, "event: changed").await;
    until(&mut events, "event: pull_request.submitted").await;
    system.until_state(pr, "MERGED").await;
    until(&mut events, "event: pull_request.merged").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn live_pages_and_events_work_behind_nginx_with_its_defaults() {
    works_behind(DEFAULTS, "http").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn live_pages_and_events_work_behind_the_proxy_of_the_handbook() {
    works_behind(&block("nginx"), "https").await;
}
