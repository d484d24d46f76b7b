//! Checks a bare repository: whether it can be read and written, and whether pushes are
//! seen.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use signalbox_domain::ports::{Repository, Severity};
use signalbox_domain::time::Timestamp;
use signalbox_hosts::{Problem, StaleLock};

use crate::git::program;
use crate::hooks::{POST_RECEIVE, settings};
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
    let problem = hook_problem(repository, path, &advice);
    let sentence = problem.or_else(|| setting_problem(repository, path, &advice))?;
    Some(Problem { severity: Severity::Warning, sentence })
}

/// A setting that limits pushes and is missing, for example because an earlier version installed the hooks.
fn setting_problem(repository: &Repository, path: &Path, advice: &str) -> Option<String> {
    let mut command = Command::new(program());
    command.args(["config", "--file"]).arg(path.join("config"));
    command.args(["--get-regexp", "^receive\\."]);
    let read = command.output().map(|done| String::from_utf8_lossy(&done.stdout).into_owned());
    let read = read.unwrap_or_default().to_lowercase();
    let is_set = |key: &str, value: &str| {
        let line = format!("{key} {value}").to_lowercase();
        read.lines().any(|it| it == line)
    };
    let (key, value) = settings().find(|(key, value)| !is_set(key, value))?;
    Some(format!("{}: pushes are not limited: {key} is not {value}: {advice}", repository.name))
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
