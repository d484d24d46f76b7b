//! Repositories: whether they can be read, and whether pushes for review are taken.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use signalbox_domain::ports::{Repository, Stores};

use super::Finding;
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
    let local: Vec<&Repository> = listed.iter().filter(|it| it.path.is_some()).collect();
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
    let Host::Git { host, root, .. } = host;
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
    let hook = path.join("hooks").join("proc-receive");
    let advice = format!("run `signalbox repo add {name} --org SLUG --path {shown}` again");
    let Ok(text) = std::fs::read_to_string(&hook) else {
        return Some((false, format!("{name} takes no pushes to refs/for: {advice}")));
    };
    let mode = std::fs::metadata(&hook).map_or(0, |it| it.permissions().mode());
    if mode & 0o111 == 0 {
        return Some((false, format!("{name}: {} cannot be run: {advice}", hook.display())));
    }
    let program = text.lines().find_map(|line| line.strip_prefix("exec '"));
    let program = program.and_then(|rest| rest.split_once('\'')).map(|(program, _)| program);
    if program.is_some_and(|program| !Path::new(program).exists()) {
        return Some((false, format!("{name}: its hook calls a program that is gone: {advice}")));
    }
    None
}
