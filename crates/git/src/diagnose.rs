//! Checks a bare repository: whether it can be read and written, and whether pushes are
//! seen.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use signalbox_domain::ports::{Repository, Severity};
use signalbox_domain::time::Timestamp;
use signalbox_hosts::{Problem, StaleLock};

use crate::hooks::POST_RECEIVE;
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
    let sentence = hook_problem(repository, path, &advice)?;
    Some(Problem { severity: Severity::Warning, sentence })
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
