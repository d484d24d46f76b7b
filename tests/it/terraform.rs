//! The requests of the public service's Terraform provider, in the order in which it sends them: plan,
//! apply, import, drift and destroy.

use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::harness::{On, Reply, System};
use crate::strangers::{client, sign_in};

/// The queue's import id: `host/owner/name/branch`.
const ID: &str = "git.local/acme/calc/release/1.x";

/// A Terraform resource with the settings that its configuration has.
struct Resource<'a> {
    system: &'a System,
    token: &'a str,
    config: Map<String, Value>,
}

/// The queue that the import id names.
fn place() -> Map<String, Value> {
    let parts: Vec<&str> = ID.splitn(4, '/').collect();
    let repo = json!({ "host": parts[0], "owner": parts[1], "name": parts[2] });
    Map::from_iter([("repo".to_owned(), repo), ("targetBranch".to_owned(), json!(parts[3]))])
}

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(object) = value else { panic!("no object: {value}") };
    object
}

impl<'a> Resource<'a> {
    const fn new(system: &'a System, token: &'a str, config: Map<String, Value>) -> Self {
        Self { system, token, config }
    }

    /// Sends a request as the provider does.
    async fn send(&self, operation: &str, keys: Map<String, Value>) -> Reply {
        let headers = [
            ("x-api-token", self.token),
            ("x-source", "terraform"),
            ("content-type", "application/json"),
            ("user-agent", "Go-http-client/1.1"),
        ];
        let mut body = place();
        body.extend(keys);
        let path = format!("/v1/{operation}");
        self.system.send(Method::POST, &path, &headers, Value::Object(body).to_string()).await
    }

    async fn ok(&self, operation: &str, keys: Map<String, Value>) -> Map<String, Value> {
        let reply = self.send(operation, keys).await;
        assert_eq!(reply.status, 200, "{operation}: {}", reply.text);
        object(reply.json())
    }

    /// Reads the queue, as before every plan and for an import.
    async fn read(&self) -> Map<String, Value> {
        let mut queue = self.ok("getQueue", Map::new()).await;
        assert!(queue.remove("enqueuedPullRequests").is_some_and(|it| it.is_array()));
        queue
    }

    /// The settings that an apply would change.
    async fn plan(&self) -> Vec<String> {
        let read = self.read().await;
        let differs = |(key, value): &(&String, &Value)| read.get(key.as_str()) != Some(*value);
        self.config.iter().filter(differs).map(|(key, _)| key.clone()).collect()
    }

    /// Sends the configuration, and the wish to have no own list of required statuses if it has none.
    /// The provider aborts unless the reply has every value that was sent, and every other one as it
    /// was.
    async fn apply(&self) -> Map<String, Value> {
        let before = self.read().await;
        let mut sent = self.config.clone();
        let mut expected = before;
        expected.extend(self.config.clone());
        if !self.config.contains_key("requiredStatuses") {
            sent.insert("deleteRequiredStatuses".to_owned(), json!(true));
            expected.insert("requiredStatuses".to_owned(), json!([]));
        }
        let reply = self.ok("updateQueue", sent).await;
        let without_pause = |queue: &Map<String, Value>| {
            let mut queue = queue.clone();
            queue.retain(|key, _| !key.starts_with("paused"));
            queue
        };
        assert_eq!(without_pause(&reply), without_pause(&expected));
        reply
    }

    /// The settings page.
    async fn page(&self) -> String {
        let path = "/acme/queue/settings?repo=git.local%2Facme%2Fcalc&branch=release%2F1.x";
        self.system.get(path).await
    }
}

/// Changes the queue with another token and without a source.
async fn change_directly(resource: &Resource<'_>, token: &str, keys: Value) {
    let mut body = place();
    body.extend(object(keys));
    let headers = [("x-api-token", token), ("content-type", "application/json")];
    let body = Value::Object(body).to_string();
    let reply = resource.system.send(Method::POST, "/v1/updateQueue", &headers, body).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
}

/// Saves the concurrency on the settings page; the status of the reply.
async fn save_on_the_page(resource: &Resource<'_>, concurrency: &str, confirm: &str) -> u16 {
    let system = resource.system;
    let browser = client(std::net::Ipv4Addr::LOCALHOST);
    let (status, cookie) = sign_in(system, &browser, system.token()).await;
    assert_eq!(status, 303);
    let url = system.url();
    let query = "repo=git.local%2Facme%2Fcalc&branch=release%2F1.x";
    let path = format!("{url}/acme/queue/settings?{query}&concurrency={concurrency}");
    let page = browser.get(path).header("cookie", &cookie).send().await.expect("a reply");
    let page = page.text().await.expect("a page");
    let field = |name: &str| {
        let from = format!("name=\"{name}\" value=\"");
        let rest = page.split_once(&from).expect("a field").1;
        rest.split_once('"').expect("a value").0.to_owned()
    };
    let body = format!(
        "{query}&concurrency={concurrency}&version={}&form_token={}&{confirm}",
        field("version"),
        field("form_token")
    );
    let save = browser
        .post(format!("{url}/acme/queue/settings"))
        .header("origin", &url)
        .header("cookie", &cookie)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(body);
    save.send().await.expect("a reply").status().as_u16()
}

/// Every setting that the provider knows.
fn everything() -> Map<String, Value> {
    object(json!({
        "state": "draining", "mode": "parallel", "concurrency": 7, "bisectionConcurrency": 3,
        "testingTimeoutMinutes": 90, "pendingFailureDepth": 2, "canOptimisticallyMerge": true,
        "batch": true, "batchingMaxWaitTimeMinutes": 10, "batchingMinSize": 6,
        "createPrsForTestingBranches": false, "commentsEnabled": false, "commandsEnabled": false,
        "statusCheckEnabled": false, "requiredStatuses": ["lint", "test"],
        "directMergeMode": "always", "optimizationMode": "bisection_skip_redundant_tests",
        "mergeMethod": "merge_commit", "extensionEnabled": false, "labelCommandsEnabled": true,
        "stateLabelsEnabled": true, "enqueueingLabel": "ship-it"
    }))
}

async fn a_queue_is_planned_applied_imported_and_destroyed(on: On) {
    let mut system = System::new(on, "exit 0\n", 1).await;
    system.git("work", &["branch", "release/1.x"]);
    system.push("release/1.x");
    let token = system.token_with(&["--org", "acme", "--name", "tf", "--compat", "v1-live"]).1;
    let ada = system.token_with(&["--org", "acme", "--name", "ada"]).1;

    // The first plan finds nothing. The configuration has neither mode nor concurrency.
    let small = object(json!({ "batch": true, "testingTimeoutMinutes": 45 }));
    let queue = Resource::new(&system, &token, small);
    assert_eq!(queue.send("getQueue", Map::new()).await.status, 404);
    assert_eq!(queue.ok("createQueue", Map::new()).await, Map::new());
    assert!(queue.page().await.contains("Managed by Terraform"), "from its creation");
    let created = queue.apply().await;
    let defaults = json!({ "mode": "single", "concurrency": 1, "bisectionConcurrency": 1 });
    for (key, value) in object(defaults) {
        assert_eq!(created[&key], value, "{key}");
    }
    assert_eq!(queue.plan().await, Vec::<String>::new(), "after the apply");
    let again = queue.send("createQueue", object(json!({ "concurrency": 3 }))).await;
    assert_eq!((again.status, again.code().as_str()), (409, "merge_queue_exists"));

    // The configuration gets every setting, then only some; the omitted ones keep their values.
    let queue = Resource::new(&system, &token, everything());
    assert_eq!(queue.plan().await.len(), everything().len() - 1, "all but batch");
    queue.apply().await;
    assert_eq!(queue.plan().await, Vec::<String>::new());
    let some = object(json!({
        "state": "running", "mode": "single", "concurrency": 9, "enqueueingLabel": "go"
    }));
    let queue = Resource::new(&system, &token, some);
    let applied = queue.apply().await;
    assert_eq!(
        (&applied["bisectionConcurrency"], &applied["batchingMinSize"]),
        (&json!(3), &json!(6))
    );

    // An import reads the queue by its id, and the next plan is empty.
    let imported = Resource::new(&system, &token, Map::new()).read().await;
    assert_eq!(imported["branch"], "release/1.x");
    let known = |(key, _): &(String, Value)| everything().contains_key(key);
    let queue = Resource::new(&system, &token, imported.into_iter().filter(known).collect());
    assert_eq!(queue.config.len(), everything().len());
    assert_eq!(queue.plan().await, Vec::<String>::new(), "after the import");

    // Drift: by another client, and on the settings page, which requires a confirmation.
    let page = queue.page().await;
    assert!(page.contains("Managed by Terraform") && !page.contains("id=\"drift\""), "{page}");
    change_directly(&queue, &ada, json!({ "mergeMethod": "REBASE", "concurrency": 9 })).await;
    assert_eq!(save_on_the_page(&queue, "4", "").await, 400);
    assert_eq!(queue.plan().await, ["mergeMethod"]);
    assert_eq!(save_on_the_page(&queue, "4", "confirm=terraform").await, 303);
    change_directly(&queue, &ada, json!({ "state": "PAUSED", "reason": "release day" })).await;
    assert_eq!(queue.plan().await, ["concurrency", "mergeMethod", "state"]);
    let (config, page) = (queue.config.clone(), queue.page().await);
    let drifted = ["state", "concurrency", "mergeMethod"].map(|it| format!("id=\"drift-{it}\""));
    for part in ["Changed outside Terraform", "token ada"]
        .iter()
        .chain(&drifted.each_ref().map(String::as_str))
    {
        assert!(page.contains(part), "{part}: {page}");
    }

    // It is still known after a restart, and the next apply restores what was configured.
    system.kill();
    system.start().await;
    let queue = Resource::new(&system, &token, config);
    assert!(queue.page().await.contains("id=\"drift-concurrency\""));
    assert_eq!(queue.apply().await["state"], "running");
    assert_eq!(queue.plan().await, Vec::<String>::new());
    let page = queue.page().await;
    assert!(page.contains("Managed by Terraform") && !page.contains("id=\"drift\""), "{page}");
    let audit = system.run(&["audit", "list"]);
    assert!(audit.contains("managedBy"), "{audit}");

    // A change of the mode while pull requests wait is answered with what was requested.
    change_directly(&queue, &ada, json!({ "state": "PAUSED" })).await;
    let pr = system.pull_request_on("release/1.x", "change", &[("change.txt", "1\n")]);
    let submitted = json!({ "pr": { "number": pr }, "targetBranch": "release/1.x" });
    system.call("submitPullRequest", submitted.clone()).await;
    let mut config = queue.config.clone();
    config.insert("mode".to_owned(), json!("parallel"));
    config.insert("state".to_owned(), json!("paused"));
    let queue = Resource::new(&system, &token, config);
    let applied = queue.apply().await;
    assert_eq!((&applied["mode"], &applied["state"]), (&json!("parallel"), &json!("paused")));

    // A queue with pull requests is not destroyed, and a missing one is not an error.
    let refused = queue.send("deleteQueue", Map::new()).await;
    assert_eq!((refused.status, refused.code().as_str()), (400, "merge_queue_not_empty"));
    system.call("cancelPullRequest", submitted).await;
    for _ in 0..2 {
        assert_eq!(queue.ok("deleteQueue", Map::new()).await, Map::new());
    }
    assert_eq!(queue.send("getQueue", Map::new()).await.status, 404);
}

#[tokio::test]
async fn a_queue_is_planned_applied_imported_and_destroyed_on_sqlite() {
    a_queue_is_planned_applied_imported_and_destroyed(On::Sqlite).await;
}

#[tokio::test]
async fn a_queue_is_planned_applied_imported_and_destroyed_on_postgres() {
    a_queue_is_planned_applied_imported_and_destroyed(On::Postgres).await;
}
