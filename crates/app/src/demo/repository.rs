//! The demo's repository: a calculator in shell, with branches of all kinds.

use std::path::{Path, PathBuf};

use tokio::process::Command;

pub(super) const HOST: &str = "git.local";
pub(super) const ORG: &str = "acme";
pub(super) const OWNER: &str = "acme";
pub(super) const NAME: &str = "calc";

/// The bare repository, and a checkout of it.
pub(super) struct Git {
    bare: PathBuf,
    work: PathBuf,
}

/// A branch: its name, the subject of its commit, what it is, and its files.
pub(super) struct Branch {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    files: &'static [(&'static str, &'static str)],
}

const CHECK: &str = "set -eu\nsleep 1\n. ./calc.sh\nfor file in lib/*.sh tests/*.sh; do\n  [ -e \"$file\" ] || continue\n  echo \"== $file\"\n  . \"./$file\"\ndone\necho all passed\n";
const CONFIG: &str = "[merge]\nrequired_statuses = [\"test\"]\n\n[[checks]]\nname = \"test\"\nrun = [\"sh\", \"check.sh\"]\ntimeout_minutes = 1\n";
const CALC: &str = "# A small calculator.\n\nadd() { echo $(($1 + $2)); }\n";
const TEST_ADD: &str = "[ \"$(add 2 3)\" = 5 ]\n";

/// The branches, in the order of their pull requests. The conflict is among the first three, so
/// that it is found while the one that it conflicts with is still under test.
pub(super) const BRANCHES: [Branch; 7] = [
    Branch {
        name: "subtract",
        title: "Teach it to subtract",
        files: &[
            ("lib/sub.sh", "sub() { echo $(($1 - $2)); }\n"),
            ("tests/sub.sh", "[ \"$(sub 5 3)\" = 2 ]\n"),
        ],
    },
    Branch {
        name: "rename",
        title: "Call add what it is: sum",
        files: &[
            ("calc.sh", "# A small calculator.\n\nsum() { echo $(($1 + $2)); }\n"),
            ("tests/add.sh", "[ \"$(sum 2 3)\" = 5 ]\n"),
        ],
    },
    Branch {
        name: "comment",
        title: "Say what add does",
        files: &[("calc.sh", "# A small calculator.\n\nadd() { echo $(($1 + $2)); } # of two\n")],
    },
    Branch {
        name: "multiply",
        title: "Teach it to multiply",
        files: &[
            ("lib/mul.sh", "mul() { echo $(($1 + $2)); }\n"),
            ("tests/mul.sh", "[ \"$(mul 3 4)\" = 12 ]\n"),
        ],
    },
    Branch {
        name: "double",
        title: "Teach it to double, with add",
        files: &[
            ("lib/double.sh", "double() { add \"$1\" \"$1\"; }\n"),
            ("tests/double.sh", "[ \"$(double 4)\" = 8 ]\n"),
        ],
    },
    Branch {
        name: "draft",
        title: "Something half done",
        files: &[("lib/half.sh", "half() { echo $(($1 / 2)); }\n")],
    },
    Branch {
        name: "readme",
        title: "Write a README",
        files: &[("README.md", "# calc\n\nA small calculator.\n")],
    },
];

impl Git {
    /// Where the bare repository is.
    pub(super) fn bare(&self) -> String {
        self.bare.display().to_string()
    }

    /// Calls git on the bare repository.
    pub(super) async fn read(&self, args: &[&str]) -> Result<String, String> {
        git(&self.bare, args).await
    }

    async fn work(&self, args: &[&str]) -> Result<String, String> {
        git(&self.work, args).await
    }

    fn write(&self, files: &[(&str, &str)]) -> Result<(), String> {
        for (name, text) in files {
            let path = self.work.join(name);
            let folder = path.parent().unwrap_or(&self.work);
            std::fs::create_dir_all(folder)
                .and_then(|()| std::fs::write(&path, text))
                .map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(())
    }

    async fn commit(&self, title: &str) -> Result<(), String> {
        self.work(&["add", "-A"]).await?;
        self.work(&["commit", "-q", "-m", title]).await.map(drop)
    }

    /// Whether the checks pass on what is checked out.
    async fn passes(&self) -> Result<bool, String> {
        let check = ["-c", "sleep() { :; }; . ./check.sh"];
        let done = Command::new("sh").args(check).current_dir(&self.work).output().await;
        Ok(done.map_err(|error| error.to_string())?.status.success())
    }
}

async fn git(folder: &Path, args: &[&str]) -> Result<String, String> {
    let done = Command::new("git")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
        .args(["-c", "init.defaultBranch=main", "-c", "core.hooksPath=/dev/null", "-C"])
        .arg(folder)
        .args(args)
        .output()
        .await
        .map_err(|error| format!("git cannot be run: {error}"))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).trim_end().to_owned());
    }
    Err(format!("git {}: {}", args.join(" "), String::from_utf8_lossy(&done.stderr).trim()))
}

/// Makes the repository and its branches.
pub(super) async fn make(root: &Path, work: &Path) -> Result<Git, String> {
    let bare = root.join(OWNER).join(format!("{NAME}.git"));
    if bare.exists() || work.exists() {
        return Err(format!(
            "{} is there already: use an empty folder, or none for a temporary one",
            bare.display()
        ));
    }
    for folder in [&bare, work] {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let made = Git { bare, work: work.to_owned() };
    made.read(&["init", "-q", "--bare"]).await?;
    made.work(&["init", "-q"]).await?;
    made.write(&[
        ("check.sh", CHECK),
        (".signalbox.toml", CONFIG),
        ("calc.sh", CALC),
        ("tests/add.sh", TEST_ADD),
    ])?;
    made.commit("A calculator that adds").await?;
    let bare = made.bare();
    made.work(&["push", "-q", &bare, "main"]).await?;
    for branch in &BRANCHES {
        made.work(&["checkout", "-q", "-b", branch.name, "main"]).await?;
        made.write(branch.files)?;
        made.commit(branch.title).await?;
        // Only the multiplication is wrong by itself; the others pass where they were made.
        if made.passes().await? == (branch.name == "multiply") {
            return Err(format!("branch {} is not what the story needs", branch.name));
        }
        made.work(&["push", "-q", &bare, branch.name]).await?;
    }
    Ok(made)
}
