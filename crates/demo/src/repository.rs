//! The demo's repository: a calculator in shell, and the branches of the scenarios.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::DemoError;
use crate::scenario::{Branch, Gate};
use crate::scenarios::SCENARIOS;

pub(crate) const HOST: &str = "git.local";
pub(crate) const ORG: &str = "acme";
pub(crate) const OWNER: &str = "acme";
pub(crate) const NAME: &str = "calc";

/// The bare repository, and a checkout of it.
pub(crate) struct Git {
    bare: PathBuf,
    work: PathBuf,
    gates: PathBuf,
    /// The file that the checks of the waiting queue wait for.
    held: PathBuf,
}

/// The checks wait at a gate; `$gates` is where tests find further ones.
const CHECK: &str = "set -eu\ngates=GATES\nwhile [ ! -e \"$gates/OPEN\" ]; do sleep 0.1; done\nsleep 0.5\n. ./calc.sh\nfor file in lib/*.sh tests/*.sh; do\n  [ -e \"$file\" ] || continue\n  echo \"== $file\"\n  . \"./$file\"\ndone\n[ -z \"${failed:-}\" ]\necho all passed\n";
const CONFIG: &str = "[merge]\nrequired_statuses = [\"test\"]\n\n[[checks]]\nname = \"test\"\nrun = [\"sh\", \"check.sh\"]\ntimeout_minutes = 1\nreports = [\"report.xml\"]\n";
/// The timeout of the checks of the waiting queue: a week.
const HELD: &str = "timeout_minutes = 10080";
const CALC: &str = "# A small calculator.\n\nadd() { echo $(($1 + $2)); }\n";
const TEST_ADD: &str = "[ \"$(add 2 3)\" = 5 ]\n";

impl Git {
    /// Where the bare repository is.
    pub(crate) fn bare(&self) -> String {
        self.bare.display().to_string()
    }

    /// Calls git on the bare repository.
    pub(crate) async fn read(&self, args: &[&str]) -> Result<String, DemoError> {
        git(&self.bare, args).await
    }

    /// Opens a gate, so that the checks that wait at it continue.
    pub(crate) fn open(&self, gate: Gate) -> Result<(), DemoError> {
        std::fs::write(self.gates.join(gate.file()), "").map_err(DemoError::file(&self.gates))
    }

    /// Closes all gates, and removes the files that tests have left there.
    pub(crate) fn close_gates(&self) -> Result<(), DemoError> {
        let emptied = match std::fs::remove_dir_all(&self.gates) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => std::fs::create_dir(&self.gates),
        };
        emptied.map_err(DemoError::file(&self.gates))
    }

    /// The subjects of a branch's commits after the first one, oldest first.
    pub(crate) async fn subjects(&self, branch: &str) -> Result<Vec<String>, DemoError> {
        let log = self.read(&["log", "--reverse", "--format=%s", branch]).await?;
        Ok(log.lines().skip(1).map(ToOwned::to_owned).collect())
    }

    async fn work(&self, args: &[&str]) -> Result<String, DemoError> {
        git(&self.work, args).await
    }

    fn write(&self, files: &[(&str, &str)]) -> Result<(), DemoError> {
        for (name, text) in files {
            let path = self.work.join(name);
            let folder = path.parent().unwrap_or(&self.work);
            std::fs::create_dir_all(folder)
                .and_then(|()| std::fs::write(&path, text))
                .map_err(DemoError::file(&path))?;
        }
        Ok(())
    }

    /// Makes a branch with one commit on top of another one, and pushes it.
    pub(crate) async fn grow(
        &self,
        from: &str,
        name: &str,
        title: &str,
        files: &[(&str, &str)],
    ) -> Result<(), DemoError> {
        self.work(&["checkout", "-q", "-b", name, from]).await?;
        self.write(files)?;
        self.commit(title).await?;
        self.work(&["push", "-q", &self.bare(), name]).await.map(drop)
    }

    /// Makes a target branch whose tests wait as long as its own gate is closed.
    pub(crate) async fn hold(&self, target: &str) -> Result<(), DemoError> {
        let check = format!("set -eu\nwhile [ ! -e {} ]; do sleep 0.1; done\n", quoted(&self.held));
        let check =
            format!("{check}sleep 3\n. ./calc.sh\nfor file in lib/*.sh; do . \"./$file\"; done\n");
        let config = CONFIG.replace("timeout_minutes = 1\nreports = [\"report.xml\"]", HELD);
        let files = [("check.sh", check.as_str()), (".signalbox.toml", config.as_str())];
        self.grow("main", target, "Test when the gate opens", &files).await
    }

    /// The file that the tests of that branch wait for.
    pub(crate) fn gate(&self) -> String {
        self.held.display().to_string()
    }

    /// Lets the checks of that branch finish.
    pub(crate) fn release(&self) -> Result<(), DemoError> {
        std::fs::write(&self.held, "").map_err(DemoError::file(&self.held))
    }

    /// Makes the checks of that branch wait.
    pub(crate) fn withhold(&self) -> Result<(), DemoError> {
        std::fs::remove_file(&self.held).map_err(DemoError::file(&self.held))
    }

    async fn commit(&self, title: &str) -> Result<(), DemoError> {
        self.work(&["add", "-A"]).await?;
        self.work(&["commit", "-q", "-m", title]).await.map(drop)
    }

    /// Makes a branch on the first commit, and pushes it.
    async fn branch(&self, branch: &Branch) -> Result<(), DemoError> {
        self.work(&["checkout", "-q", "-b", branch.name, "main"]).await?;
        self.write(branch.files)?;
        self.commit(branch.title).await?;
        if self.passes().await? == branch.fails_alone {
            let problem = format!("branch {} does not behave as its scenario needs", branch.name);
            return Err(DemoError::Story(problem));
        }
        self.work(&["push", "-q", &self.bare(), branch.name]).await.map(drop)
    }

    /// Whether the checks pass on what is checked out.
    async fn passes(&self) -> Result<bool, DemoError> {
        let check = ["-c", "sleep() { :; }; . ./check.sh"];
        let done = Command::new("sh").args(check).current_dir(&self.work).output().await;
        Ok(done?.status.success())
    }
}

/// A path as a word for the shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

async fn git(folder: &Path, args: &[&str]) -> Result<String, DemoError> {
    let done = Command::new("git")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
        .args(["-c", "init.defaultBranch=main", "-c", "core.hooksPath=/dev/null", "-C"])
        .arg(folder)
        .args(args)
        .output()
        .await
        .map_err(DemoError::NoGit)?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).trim_end().to_owned());
    }
    let problem = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    Err(DemoError::Git { command: args.join(" "), problem })
}

/// Makes the repository and its branches.
pub(crate) async fn make(root: &Path, work: &Path) -> Result<Git, DemoError> {
    let bare = root.join(OWNER).join(format!("{NAME}.git"));
    if bare.exists() || work.exists() {
        return Err(DemoError::NotEmpty(bare));
    }
    for folder in [&bare, work] {
        std::fs::create_dir_all(folder).map_err(DemoError::file(folder))?;
    }
    let gates = std::path::absolute(work.with_extension("gates"))?;
    let held = gates.with_extension("go");
    let quoted = quoted(&gates);
    let made = Git { bare, work: work.to_owned(), gates, held };
    made.close_gates()?;
    for gate in Gate::ALL {
        made.open(gate)?;
    }
    made.read(&["init", "-q", "--bare"]).await?;
    made.work(&["init", "-q"]).await?;
    made.write(&[
        ("check.sh", &CHECK.replace("OPEN", Gate::Checks.file()).replace("GATES", &quoted)),
        (".signalbox.toml", CONFIG),
        ("calc.sh", CALC),
        ("tests/add.sh", TEST_ADD),
    ])?;
    made.commit("A calculator that adds").await?;
    let bare = made.bare();
    for scenario in &SCENARIOS {
        let target = format!("main:refs/heads/{}", scenario.target);
        made.work(&["push", "-q", &bare, &target]).await?;
        for branch in scenario.branches {
            made.branch(branch).await?;
        }
    }
    made.close_gates()?;
    Ok(made)
}
