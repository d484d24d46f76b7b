//! Repositories: whether they can be read, and whether pushes for review are taken.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use signalbox_domain::ports::{Clock, Repository, Stores};
use signalbox_git::{POST_RECEIVE, StaleLock, stale_locks};

use super::Finding;
use crate::adapters::SystemClock;
use crate::config::{Config, Host};
use crate::wiring::chain;

pub(super) async fn repositories(config: &Config, stores: &Stores) -> Vec<Finding> {
    let roots = config.organizations.iter().flat_map(|it| &it.hosts).filter_map(root);
    let mut found: Vec<Finding> = roots.collect();
    let listed = match stores.repos.list(None).await {
        Ok(listed) => listed,
        Err(error) => {
            found.push(Finding::bad("repositories", chain("repositories", &error)));
            return found;
        }
    };
    let elsewhere: Vec<&str> = config
        .organizations
        .iter()
        .flat_map(|it| &it.hosts)
        .filter(|host| matches!(host, Host::GitHub(_)))
        .map(Host::name)
        .collect();
    let is_local =
        |it: &&Repository| it.path.is_some() && !elsewhere.contains(&it.name.host.as_str());
    let local: Vec<&Repository> = listed.iter().filter(is_local).collect();
    let problems: Vec<(bool, String)> = local.iter().filter_map(|it| problem(it)).collect();
    if problems.is_empty() {
        let words = format!("{} can be read", local.len());
        found.push(Finding::good("repositories", words));
    }
    for (bad, words) in problems {
        let finding = if bad { Finding::bad } else { Finding::warning };
        found.push(finding("repositories", words));
    }
    found
}

/// The folder of a host's repositories, when it is not there.
fn root(host: &Host) -> Option<Finding> {
    let (host, root) = match host {
        Host::Git { host, root, .. } => (host, root),
        Host::GitHub(_) => return None,
    };
    let root = root.as_ref()?;
    let missing = std::fs::read_dir(root).err()?;
    Some(Finding::bad("hosts", format!("{host}: {}: {missing}", root.display())))
}

/// What is wrong with a repository, and whether it stops its queue.
fn problem(repository: &Repository) -> Option<(bool, String)> {
    let (name, path) = (&repository.name, Path::new(repository.path.as_deref()?));
    let shown = path.display();
    if let Err(error) = std::fs::read(path.join("HEAD")) {
        return Some((true, format!("{name}: {shown} is no repository that can be read: {error}")));
    }
    if let Err(error) = tempfile::tempfile_in(path.join("objects")) {
        return Some((true, format!("{name}: nothing can be written to {shown}: {error}")));
    }
    match stale_locks(path, SystemClock.now()) {
        Ok(locks) => {
            if let Some(StaleLock { path: lock, age }) = locks.first() {
                let (lock, minutes) = (lock.display(), age.millis() / 60_000);
                let words = format!(
                    "{name}: {lock} is {minutes} min old and held by no process; a running server \
                     removes it"
                );
                return Some((true, words));
            }
        }
        Err(error) => return Some((true, format!("{name}: {shown} cannot be searched: {error}"))),
    }
    let advice = format!("run `signalbox repo add {name} --org SLUG --path {shown}` again");
    hook_problem(repository, path, &advice).map(|words| (false, words))
}

/// What keeps a repository's hooks from telling of pushes.
fn hook_problem(repository: &Repository, path: &Path, advice: &str) -> Option<String> {
    let name = &repository.name;
    let hook = path.join("hooks").join("proc-receive");
    let Ok(text) = std::fs::read_to_string(&hook) else {
        return Some(format!("{name} takes no pushes to refs/for: {advice}"));
    };
    let mode = std::fs::metadata(&hook).map_or(0, |it| it.permissions().mode());
    if mode & 0o111 == 0 {
        return Some(format!("{name}: {} cannot be run: {advice}", hook.display()));
    }
    let program = text.lines().find_map(|line| line.strip_prefix("exec '"));
    let program = program.and_then(|rest| rest.split_once('\'')).map(|(program, _)| program);
    if program.is_some_and(|program| !Path::new(program).exists()) {
        return Some(format!("{name}: its hook calls a program that is gone: {advice}"));
    }
    let told = path.join("hooks").join(POST_RECEIVE);
    let Ok(text) = std::fs::read(&told) else {
        return Some(format!("{name}: pushes are noticed two seconds late: {advice}"));
    };
    // An operator's own hook may call ours.
    let calls_ours = ["hook post-receive", "'hook' 'post-receive'"];
    let text = String::from_utf8_lossy(&text);
    if !calls_ours.iter().any(|call| text.contains(call)) {
        let hook = told.display();
        return Some(format!(
            "{name}: pushes are noticed two seconds late: let {hook} run `signalbox … hook \
             post-receive`, with the arguments that hooks/proc-receive has"
        ));
    }
    None
}
