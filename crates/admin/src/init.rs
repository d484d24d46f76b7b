//! `signalbox init`: everything that a first queue needs.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use signalbox_domain::ids::{BranchName, OrgId, OrgSlug, RepoName};
use signalbox_domain::ports::Repository;
use signalbox_domain::time::Span;
use signalbox_domain::token::{Scope, TokenText};
use signalbox_git::BareRepository;
use signalbox_hosts::CONFIG_FILE;
use signalbox_services::{Error, NewToken, TokenService};
use signalbox_terminal::{Format, complain, say, say_json};
use signalbox_wording::shell_word;

use crate::AdminError;
use crate::doctor::sandbox;
use crate::offline::organization;
use crate::program::{Offline, Program, config, open_or_create};
use crate::repo::register;

/// The name of the token.
const TOKEN: &str = "init";
/// How long the token is valid.
const TOKEN_DAYS: u32 = 90;
/// The configuration in the first commit. Its check passes in every sandbox.
const SAMPLE: &str = r#"# What the merge queue tests. It is read from the target branch.
[[checks]]
name = "test"
run = ["sh", "-c", "echo 'replace this by your tests'"]  # a program and its arguments, such as ["cargo", "test"]
timeout_minutes = 30
"#;

#[derive(Args)]
pub struct Init {
    /// The bare repository; created when it does not exist.
    #[arg(default_value = "project.git")]
    folder: PathBuf,
    /// Use this existing bare repository, and create none.
    #[arg(long, value_name = "BARE_REPO", conflicts_with = "folder")]
    path: Option<PathBuf>,
    /// The organization; created when it does not exist.
    #[arg(long, env = "SIGNALBOX_ORG", value_name = "SLUG", default_value = "local")]
    org: String,
    /// The name of the repository in commands and in the API; default: git.local, the organization
    /// and the name of the folder.
    #[arg(long, alias = "name", value_name = "HOST/OWNER/NAME")]
    repo: Option<String>,
    /// The target branch of the queue; default: the repository's default branch, or main.
    #[arg(long)]
    branch: Option<String>,
    #[command(flatten)]
    format: Format,
}

/// Creates what is missing, and leaves the rest unchanged: a second run changes nothing.
pub async fn init(program: &dyn Program, action: Init) -> Result<(), AdminError> {
    let Init { folder, path, org, repo, branch, format } = action;
    let config = config(program)?;
    let slug = OrgSlug::new(org.as_str())?;
    let branch = branch.map(BranchName::new).transpose()?;
    let folder = std::path::absolute(path.as_ref().unwrap_or(&folder))?;
    let name = match repo {
        Some(name) => RepoName::parse(&name)?,
        None => default_name(&slug, &folder)?,
    };
    let is_new = prepare(&folder, path.is_none(), branch.as_ref()).await?;
    let folder = folder.canonicalize().map_err(AdminError::file(&folder))?;
    let bare = BareRepository::at(&folder);
    let branch = target(&bare, &folder, branch).await?;

    let app = open_or_create(program, config).await?;
    let org = organization(&app, slug.as_str()).await?.id;
    refuse_other_folder(&app, org, &name, &folder).await?;
    let repository = register(program, &app, org, name.clone(), Some(folder.clone()), true).await?;
    if bare.branches().await?.is_empty() {
        bare.configure(&branch, SAMPLE, app.context.clock.now()).await?;
    }
    match app.queues.create_queue_as_operator(&repository, &branch).await {
        Ok(()) | Err(Error::QueueExists { .. }) => {}
        Err(error) => return Err(AdminError::failed("merge queue")(error)),
    }
    let token = token(&app, org, &repository).await?;
    let data = std::path::absolute(app.config.data_dir())?;
    if format.is_json() {
        let line = json!({
            "repo": name.to_string(), "path": folder, "branch": branch.as_str(),
            "org": slug.as_str(), "dataDir": data, "token": token.as_ref().map(TokenText::reveal),
        });
        say_json(&line);
    } else {
        let created = if is_new { "created" } else { "found" };
        say(&format!("{created} the bare repository {}", folder.display()));
        say(&format!("registered it as {name}, with a merge queue for {branch}"));
        say(&format!("the server's data is in {}", data.display()));
        next_commands(program, &folder, &name, &branch, token.as_ref());
    }
    if !bare.is_configured(&branch).await? {
        complain(&format!(
            "`{branch}` has no {CONFIG_FILE}, so the queue does not know what to test; push one, \
             such as:"
        ));
        signalbox_terminal::note(SAMPLE);
    }
    if let Err(problem) = sandbox(&app.config).ready().await {
        complain(&format!("checks cannot run yet: {problem}"));
    }
    Ok(())
}

/// `git.local`, the organization and the name of the folder.
fn default_name(org: &OrgSlug, folder: &Path) -> Result<RepoName, AdminError> {
    let stem = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let stem = stem.unwrap_or_default();
    let stem = stem.strip_suffix(".git").unwrap_or(&stem);
    RepoName::new("git.local", org.as_str(), stem)
        .map_err(|error| AdminError::Argument(format!("{error}; choose a name with --name")))
}

/// Creates the bare repository if it is missing and may be created; returns whether it did.
async fn prepare(
    folder: &Path,
    may_create: bool,
    branch: Option<&BranchName>,
) -> Result<bool, AdminError> {
    let is_bare = folder.join("HEAD").is_file() && folder.join("objects").is_dir();
    if is_bare {
        return Ok(false);
    }
    let shown = folder.display();
    if !may_create {
        return Err(AdminError::NotFound(format!("{shown} is not a bare git repository")));
    }
    let is_empty = match std::fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
        Err(error) => return Err(AdminError::file(folder)(error)),
    };
    if !is_empty {
        return Err(AdminError::Refused(format!(
            "{shown} is neither empty nor a bare git repository; for a bare copy of a repository, \
             run `git clone --bare {shown} {shown}.git`, then `signalbox init --path {shown}.git`"
        )));
    }
    let main = || BranchName::new("main");
    let branch = branch.cloned().map_or_else(main, Ok)?;
    BareRepository::at(folder).create(&branch).await?;
    Ok(true)
}

/// The target branch. In a repository with branches it must exist.
async fn target(
    bare: &BareRepository,
    folder: &Path,
    chosen: Option<BranchName>,
) -> Result<BranchName, AdminError> {
    let target = match chosen {
        Some(branch) => branch,
        None => match bare.default_branch().await? {
            Some(branch) => branch,
            None => BranchName::new("main")?,
        },
    };
    let branches = bare.branches().await?;
    if branches.is_empty() || branches.iter().any(|name| name == target.as_str()) {
        return Ok(target);
    }
    Err(AdminError::NotFound(format!(
        "{} has no branch `{target}`; choose one with --branch: {}",
        folder.display(),
        branches.join(", ")
    )))
}

/// A name that is registered for another folder stays there.
async fn refuse_other_folder(
    app: &Offline,
    org: OrgId,
    name: &RepoName,
    folder: &Path,
) -> Result<(), AdminError> {
    let known = app.context.repositories().named(org, name).await;
    let known = known.map_err(AdminError::failed("repository"))?;
    match known.and_then(|it| it.path) {
        Some(path) if Path::new(&path) != folder => Err(AdminError::Refused(format!(
            "{name} is registered for {path}; choose another name with --name"
        ))),
        Some(_) | None => Ok(()),
    }
}

/// A new token for the repository; `None` if an earlier run has made one that is still valid.
async fn token(
    app: &Offline,
    org: OrgId,
    repository: &Repository,
) -> Result<Option<TokenText>, AdminError> {
    let known = app.context.stores.account.tokens.list(Some(org)).await;
    let known = known.map_err(AdminError::failed("tokens"))?;
    let (now, repos) = (app.context.clock.now(), vec![repository.name.clone()]);
    if known.iter().any(|it| it.name == TOKEN && it.repos == repos && it.is_valid(now)) {
        return Ok(None);
    }
    let new = NewToken {
        name: TOKEN.to_owned(),
        scopes: vec![Scope::QueueRead, Scope::QueueSubmit, Scope::QueueAdmin, Scope::TestsRead],
        repos,
        valid_for: Some(Span::hours(TOKEN_DAYS * 24)),
        compatibility: signalbox_domain::token::Compatibility::default(),
    };
    let made = TokenService::new(app.context.clone()).create_as_operator(org, new).await;
    made.map(|(_, text)| Some(text)).map_err(AdminError::failed("token"))
}

/// What to do next, with the flags of this call.
fn next_commands(
    program: &dyn Program,
    folder: &Path,
    name: &RepoName,
    branch: &BranchName,
    token: Option<&TokenText>,
) {
    let flags = program.flags();
    let mut serve = "signalbox serve".to_owned();
    for (flag, value) in [
        ("--config", flags.config.as_deref().map(Path::to_string_lossy)),
        ("--database", flags.database.as_deref().map(Into::into)),
        ("--data-dir", flags.data_dir.as_deref().map(Path::to_string_lossy)),
    ] {
        if let Some(value) = value {
            serve = format!("{serve} {flag} {}", shell_word(&value));
        }
    }
    match token {
        Some(token) => say(&format!(
            "the token is valid for {TOKEN_DAYS} days, for this repository only, and shown only \
             once:\n\n  export SIGNALBOX_TOKEN={}",
            token.reveal()
        )),
        None => say(&format!(
            "the token `{TOKEN}` of an earlier run is still valid; for another one: signalbox \
             token create"
        )),
    }
    let path = shell_word(&folder.to_string_lossy());
    let push = shell_word(&format!("HEAD:refs/for/{branch}"));
    let option = if branch.as_str() == "main" {
        String::new()
    } else {
        format!(" --branch {}", shell_word(branch.as_str()))
    };
    say(&format!(
        "\nNext, start the server and leave it running. Then commit a change in a clone of \
         {path}, push it as a pull request, and look at the queue:\n\n  {serve}\n  \
         git push {path} {push} -o topic=first -o submit\n  \
         signalbox queue status --repo {name}{option}"
    ));
}
