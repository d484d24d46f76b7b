//! Shared by the commands that open the database. A server may run on it at the same time.

use std::collections::BTreeMap;

use clap::Args;
use signalbox_domain::audit::{AuditAction, AuditFields};
use signalbox_domain::ids::{OrgId, OrgSlug, RepoName};
use signalbox_domain::ports::{Org, Repository};

use crate::AdminError;
use crate::audit::note;
use crate::program::Offline;

/// The repository of a command.
#[derive(Args)]
pub struct RepositoryArg {
    /// HOST/OWNER/NAME.
    #[arg(
        long = "repo",
        env = "SIGNALBOX_REPO",
        value_name = "HOST/OWNER/NAME",
        value_parser = RepoName::parse
    )]
    repo: Option<RepoName>,
    /// The same as an argument.
    #[arg(value_name = "REPOSITORY", value_parser = RepoName::parse, hide = true)]
    name: Option<RepoName>,
}

impl RepositoryArg {
    /// The argument; otherwise the option or the variable.
    pub(crate) fn name(self) -> Result<RepoName, AdminError> {
        let missing = || {
            let words = "no repository: give --repo HOST/OWNER/NAME or set SIGNALBOX_REPO";
            AdminError::Argument(words.to_owned())
        };
        // A variable may be for other commands; an option is for this one.
        let of_variable = std::env::var("SIGNALBOX_REPO").ok();
        match (self.name, self.repo) {
            (Some(name), Some(repo))
                if name != repo && of_variable.as_deref() != Some(repo.to_string().as_str()) =>
            {
                Err(AdminError::Argument(format!("both {name} and --repo {repo} are given")))
            }
            (Some(name), _) | (None, Some(name)) => Ok(name),
            (None, None) => Err(missing()),
        }
    }
}

/// The organization with that slug, created when it does not exist.
pub(crate) async fn organization(app: &Offline, slug: &str) -> Result<Org, AdminError> {
    let slug = OrgSlug::new(slug)?;
    let context = &app.context;
    let orgs = &context.stores.account.orgs;
    let known = orgs.find_by_slug(&slug).await.map_err(AdminError::failed("organization"))?;
    if let Some(known) = known {
        return Ok(known);
    }
    let org = Org { id: OrgId(context.ids.new_id()), slug, created_at: context.clock.now() };
    let kept = orgs.create(&org).await.map_err(AdminError::failed("organization"))?;
    let (action, object) =
        (AuditAction::OrganizationCreated, format!("organization {}", kept.slug));
    note(app, kept.id, action, object, (&AuditFields::new(), &AuditFields::new())).await?;
    Ok(kept)
}

/// The organization with that slug, if one is given; an error when it does not exist.
pub(crate) async fn existing_organization(
    app: &Offline,
    slug: Option<&str>,
) -> Result<Option<Org>, AdminError> {
    let Some(slug) = slug else { return Ok(None) };
    let slug = OrgSlug::new(slug)?;
    let found = app.context.stores.account.orgs.find_by_slug(&slug).await;
    let found = found.map_err(AdminError::failed("organization"))?;
    found.map(Some).ok_or_else(|| AdminError::NotFound(format!("organization {slug} not found")))
}

/// The slugs of all organizations.
pub(crate) async fn slugs(app: &Offline) -> Result<BTreeMap<OrgId, OrgSlug>, AdminError> {
    let orgs = app.context.stores.account.orgs.list().await;
    let orgs = orgs.map_err(AdminError::failed("organizations"))?;
    Ok(orgs.into_iter().map(|org| (org.id, org.slug)).collect())
}

/// The registered repository of that name. When several organizations have it, `org` selects
/// one.
pub(crate) async fn repository(
    app: &Offline,
    name: &RepoName,
    org: Option<&str>,
) -> Result<Repository, AdminError> {
    let org = existing_organization(app, org).await?.map(|it| it.id);
    let all = app.context.stores.account.repos.list(org).await;
    let all = all.map_err(AdminError::failed("repositories"))?;
    let named =
        |it: &Repository| it.name.is_same(name, app.context.hosts.any_case(it.org, &name.host));
    let mut found: Vec<_> = all.into_iter().filter(named).collect();
    if found.iter().any(|it| it.name == *name) {
        found.retain(|it| it.name == *name);
    }
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(only),
        (Some(_), Some(_)) => Err(AdminError::Argument(format!(
            "several organizations have {name}: choose one with --org"
        ))),
        (None, _) => Err(AdminError::NotFound(format!(
            "repository {name} is not registered: run signalbox repo add --repo {name} --org SLUG --path DIR"
        ))),
    }
}
