//! Checks a bare repository: whether it can be read and written, and whether pushes are
//! seen.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use signalbox_domain::ports::{Repository, Severity};
use signalbox_domain::time::Timestamp;
use signalbox_hosts::{Problem, StaleLock};

use crate::git::program;
use crate::hooks::{HIDDEN, POST_RECEIVE, settings};
use crate::host::OWN_REFS;
use crate::locks::stale_locks;

/// The problem of a repository, if it has one.
pub(crate) fn problem(repository: &Repository, path: &Path, now: Timestamp) -> Option<Problem> {
    let (name, shown) = (&repository.name, path.display());
    let stops = |sentence: String| Some(Problem { severity: Severity::Problem, sentence });
    if let Err(error) = std::fs::read(path.join("HEAD")) {
        return stops(format!("{name}: could not read the repository {shown}: {error}"));
    }
    if let Err(error) = tempfile::tempfile_in(path.join("objects")) {
        return stops(format!("{name}: could not write to {shown}: {error}"));
    }
    match stale_locks(path, now) {
        Ok(locks) => {
            if let Some(StaleLock { path: lock, age }) = locks.first() {
                let (lock, minutes) = (lock.display(), age.millis() / 60_000);
                return stops(format!(
                    "{name}: {lock} is {minutes} min old and held by no process; a running server \
                     removes it"
                ));
            }
        }
        Err(error) => return stops(format!("{name}: could not list {shown}: {error}")),
    }
    let advice = format!("run `signalbox repo add {name} --org SLUG --path {shown}` again");
    let problem = setting_problem(path, &advice).map(|it| format!("{name}: {it}"));
    let sentence = problem.or_else(|| hook_problem(repository, path, &advice))?;
    Some(Problem { severity: Severity::Warning, sentence })
}

/// A setting for pushes that differs from ours, for example because an earlier version installed the
/// hooks.
fn setting_problem(path: &Path, advice: &str) -> Option<String> {
    let read = |args: &[&str]| {
        let mut command = Command::new(program());
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        command.arg("--git-dir").arg(path).arg("config").args(args);
        let done = command.output().ok()?;
        Some(String::from_utf8_lossy(&done.stdout).into_owned())
    };
    let is_set = |key: &str, value: &str| match value {
        "true" => read(&["--type=bool", "--get", key]).is_some_and(|it| it.trim() == value),
        _ => read(&["--get-all", key]).is_some_and(|it| it.lines().any(|line| line == value)),
    };
    if let Some((key, value)) = settings().find(|(key, value)| !is_set(key, value)) {
        return Some(format!(
            "{key} is not {value}, so pushes are not accepted as they should: {advice}"
        ));
    }
    // The last of several values that fit counts, and one with `!` shows what others hide.
    let hidden = read(&["--get-all", HIDDEN])?;
    let mut shown = hidden.lines().rev().filter_map(|line| line.strip_prefix('!'));
    let is_ours = |refs: &&str| {
        let refs = refs.trim_start_matches('^');
        OWN_REFS.iter().any(|own| own.starts_with(refs) || refs.starts_with(own))
    };
    let shown = shown.find(is_ours)?;
    Some(format!("{HIDDEN} has !{shown}, so pushes can write refs of the server: remove it"))
}

/// Why a repository's hooks do not report pushes.
fn hook_problem(repository: &Repository, path: &Path, advice: &str) -> Option<String> {
    let name = &repository.name;
    let hook = path.join("hooks").join("proc-receive");
    let Ok(text) = std::fs::read_to_string(&hook) else {
        return Some(format!("{name} does not accept pushes to refs/for: {advice}"));
    };
    let mode = std::fs::metadata(&hook).map_or(0, |it| it.permissions().mode());
    if mode & 0o111 == 0 {
        return Some(format!("{name}: {} is not executable: {advice}", hook.display()));
    }
    let program = text.lines().find_map(|line| line.strip_prefix("exec '"));
    let program = program.and_then(|rest| rest.split_once('\'')).map(|(program, _)| program);
    if program.is_some_and(|program| !Path::new(program).exists()) {
        return Some(format!("{name}: its hook calls a program that does not exist: {advice}"));
    }
    let told = path.join("hooks").join(POST_RECEIVE);
    let Ok(text) = std::fs::read(&told) else {
        return Some(format!("{name}: pushes are noticed up to two seconds late: {advice}"));
    };
    // An operator's own hook may call ours.
    let calls_ours = ["hook post-receive", "'hook' 'post-receive'"];
    let text = String::from_utf8_lossy(&text);
    if !calls_ours.iter().any(|call| text.contains(call)) {
        let hook = told.display();
        return Some(format!(
            "{name}: pushes are noticed up to two seconds late: let {hook} run `signalbox … hook \
             post-receive`, with the arguments that hooks/proc-receive has"
        ));
    }
    None
}
