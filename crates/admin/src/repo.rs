//! `signalbox repo`.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::json;
use signalbox_config::{Config, has_password};
use signalbox_domain::audit::{AuditAction, AuditFields};
use signalbox_domain::ids::{OrgId, RepoId, RepoName};
use signalbox_domain::ports::Repository;
use signalbox_terminal::{Format, Table, complain, say_json};

use crate::AdminError;
use crate::audit::note;
use crate::offline::{RepositoryArg, existing_organization, organization, slugs};
use crate::program::{Offline, Program, open, open_for_setup};

#[derive(Subcommand)]
pub enum Repo {
    /// Register a repository.
    #[command(
        after_help = "Example: signalbox repo add git.local/acme/calc --org acme --path /srv/calc.git"
    )]
    Add {
        #[command(flatten)]
        repo: RepositoryArg,
        /// The organization; created when it does not exist.
        #[arg(long, env = "SIGNALBOX_ORG", value_name = "SLUG")]
        org: String,
        /// The bare repository; default: OWNER/NAME.git in the configured folder of its host.
        #[arg(long, value_name = "BARE_REPO")]
        path: Option<PathBuf>,
        /// Do not install the hook that accepts pushes to refs/for/….
        #[arg(long)]
        no_hooks: bool,
        #[command(flatten)]
        format: Format,
    },
    /// List repositories, with their public ids for uploads without a token.
    #[command(after_help = "Example: signalbox repo list --json")]
    List {
        /// Only repositories of this organization.
        #[arg(long, value_name = "SLUG")]
        org: Option<String>,
        #[command(flatten)]
        format: Format,
    },
}

pub async fn repo(program: &dyn Program, action: Repo) -> Result<(), AdminError> {
    match action {
        Repo::Add { repo, org, path, no_hooks, format } => {
            let name = repo.name()?;
            let absolute = |path: PathBuf| path.canonicalize().map_err(AdminError::file(&path));
            let path = path.map(absolute).transpose()?;
            let app = open_for_setup(program).await?;
            let org = organization(&app, &org).await?;
            let kept = register(program, &app, org.id, name.clone(), path, !no_hooks).await?;
            let (id, path) = (kept.id.to_string(), kept.path.unwrap_or_default());
            let line = json!({ "id": id, "name": name.to_string(), "path": path });
            format.say(&line, || format!("{name} at {path}"));
        }
        Repo::List { org, format } => {
            let app = open(program).await?;
            let org = existing_organization(&app, org.as_deref()).await?;
            let slugs = slugs(&app).await?;
            let repos = app.context.stores.account.repos.list(org.map(|it| it.id)).await;
            let headers = ["REPOSITORY", "ORGANIZATION", "PUBLIC ID", "PATH…"];
            let mut table = Table::new("no repositories found", &headers);
            for repo in repos.map_err(AdminError::failed("repositories"))? {
                let (id, name) = (repo.id.to_string(), repo.name.to_string());
                let public_id = app.uploads.public_id(&repo).await;
                let public_id = public_id.map_err(AdminError::failed("public id"))?.to_string();
                let org = slugs[&repo.org].as_str();
                let line = json!({
                    "id": id, "org": org, "name": name, "path": repo.path, "publicId": public_id,
                });
                if format.is_json() {
                    say_json(&line);
                } else {
                    let path = repo.path.unwrap_or_default();
                    table.row([name.into(), org.into(), public_id.into(), path.into()]);
                }
            }
            table.print_unless(format);
        }
    }
    Ok(())
}

/// Registers a bare repository of this machine, and installs its hooks.
pub(crate) async fn register(
    program: &dyn Program,
    app: &Offline,
    org: OrgId,
    name: RepoName,
    path: Option<PathBuf>,
    hooks: bool,
) -> Result<Repository, AdminError> {
    let new = Repository {
        id: RepoId(app.context.ids.new_id()),
        org,
        name: name.clone(),
        path: path.map(|path| path.to_string_lossy().into_owned()),
        created_at: app.context.clock.now(),
    };
    let host = app.hosts.plain(org, &name.host);
    let found = host.git().locate(&new).await?;
    let found = found.ok_or_else(|| match &new.path {
        Some(path) => AdminError::NotFound(format!("{path} is not a bare git repository")),
        None => AdminError::NotFound(format!("no bare repository found for {name}: pass --path")),
    })?;
    let new = Repository { path: Some(found.clone()), ..new };
    if hooks {
        let command = hook_program(program, &app.config)?;
        let installed = host.install_hooks(&new, &command).await;
        if !installed? {
            let command = command.join(" ");
            complain(&format!(
                "{found}/hooks/post-receive is not from signalbox and was not changed; for the \
                 queue to see pushes immediately, call from it: {command} hook post-receive"
            ));
        }
    }
    let after = AuditFields::from([("path".to_owned(), found.clone())]);
    let object = format!("repository {name}");
    let action = AuditAction::RepositoryRegistered;
    note(app, org, action, object, (&AuditFields::new(), &after)).await?;
    let kept = app.context.repositories().register(&new).await;
    let kept = kept.map_err(AdminError::failed("repository"))?;
    Ok(Repository { path: Some(found), ..kept })
}

/// The command that the hooks run: this program, on the same database. Git calls it in another
/// folder and with the environment of the pushing user, so every setting is passed.
fn hook_program(program: &dyn Program, config: &Config) -> Result<Vec<String>, AdminError> {
    let flags = program.flags();
    let absolute =
        |path: &Path| std::path::absolute(path).map(|path| path.to_string_lossy().into_owned());
    let mut words = vec![std::env::current_exe()?.to_string_lossy().into_owned()];
    if let Some(file) = &flags.config {
        words.extend(["--config".into(), absolute(file)?]);
    }
    words.extend(["--data-dir".into(), absolute(&config.data_dir())?]);
    let url = config.absolute_database_url()?;
    if !has_password(&url) {
        words.extend(["--database".into(), url]);
    } else if Config::in_file(flags, program.kinds())?.database_url() != url {
        // All users can read the hook and the process list.
        return Err(AdminError::Refused(
            "the hook must not contain the database's password: write database.url into a file and \
             name it with --config, or register with --no-hooks"
                .to_owned(),
        ));
    }
    Ok(words)
}
