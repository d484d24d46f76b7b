//! CI systems that identify their jobs with tokens.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use signalbox_domain::identity::{CiKind, CiSystem};
use signalbox_domain::ids::{PrNumber, RepoName};
use signalbox_domain::ports::{CiIdentities, CiIdentity, Clock, IdentityError};
use signalbox_domain::time::Timestamp;
use signalbox_domain::upload::ProvenSource;

use crate::ProviderError;
use crate::claims::check_validity;
use crate::issuer::Issuer;
use crate::token::Unchecked;

/// The longest validity of a token, in seconds: a longer one is a mistake of the CI system or none of
/// its tokens for jobs.
const MAX_VALID_SECONDS: i64 = 24 * 3600;
/// The most characters of a claim in the name of a job.
const MAX_CLAIM: usize = 40;
/// Events of GitHub whose workflow and code are those of the branch that the token names. With
/// others, such as `pull_request_target`, `workflow_run` and `workflow_dispatch`, a job may run the
/// code of a pull request while the token names the stable branch.
const OF_BRANCH: [&str; 3] = ["push", "schedule", "merge_group"];
/// Sources of pipelines of GitLab with the same property. Tokens of merge requests name the source
/// branch, so the source of the pipeline alone tells them apart.
const OF_BRANCH_GITLAB: [&str; 2] = ["push", "schedule"];

struct System {
    settings: CiSystem,
    issuer: Issuer,
}

/// The CI systems of a server.
pub struct CiSystems {
    systems: Vec<System>,
    clock: Arc<dyn Clock>,
}

impl CiSystems {
    /// Systems with these settings. An issuer is first read when a job calls. The process must have
    /// a TLS crypto provider installed.
    pub fn new(settings: Vec<CiSystem>, clock: Arc<dyn Clock>) -> Result<Self, ProviderError> {
        let system = |settings: CiSystem| {
            let issuer = Issuer::new(&settings.issuer, clock.clone())?;
            Ok(System { settings, issuer })
        };
        let systems = settings.into_iter().map(system).collect::<Result<_, ProviderError>>()?;
        Ok(Self { systems, clock })
    }
}

#[async_trait]
impl CiIdentities for CiSystems {
    async fn verify(&self, token: &str) -> Result<CiIdentity, IdentityError> {
        let refused = |why: &str| IdentityError::Refused(why.to_owned());
        let unchecked = Unchecked::parse(token);
        let unchecked = unchecked.map_err(|error| IdentityError::Refused(error.to_string()))?;
        // What is not checked yet only selects the issuer, so that other tokens cost no call.
        let named = unchecked.issuer().ok_or_else(|| refused("it names no issuer"))?;
        let mut last = refused("its issuer is not accepted");
        for system in self.systems.iter().filter(|it| it.settings.issuer == named) {
            let claims = system.issuer.claims(token).await?;
            match job(&claims, &system.settings, self.clock.now()) {
                Ok(identity) => return Ok(identity),
                Err(why) => last = IdentityError::Refused(why),
            }
        }
        Err(last)
    }
}

/// The job of these claims; the rule that they break.
fn job(claims: &Value, settings: &CiSystem, now: Timestamp) -> Result<CiIdentity, String> {
    check_validity(claims, &settings.issuer, &settings.audience, now)?;
    let text = |name: &str| claims.get(name).and_then(Value::as_str).filter(|it| !it.is_empty());
    let needed = |name: &str| text(name).ok_or_else(|| format!("it has no claim `{name}`"));
    let seconds = |name: &str| claims.get(name).and_then(Value::as_i64);
    let end = seconds("exp").ok_or("it does not expire")?;
    if end - now.unix_micros() / 1_000_000 > MAX_VALID_SECONDS {
        return Err("it is valid for more than a day".to_owned());
    }
    let (path, run, source) = match settings.kind {
        CiKind::Actions => {
            let is_of_branch = text("event_name").is_some_and(|it| OF_BRANCH.contains(&it));
            let source = source(is_of_branch, text("ref"), text("sha"));
            (needed("repository")?, text("run_id"), source)
        }
        CiKind::Pipelines => {
            let is_of_branch =
                text("pipeline_source").is_some_and(|it| OF_BRANCH_GITLAB.contains(&it));
            let source = source(is_of_branch, text("ref_path"), text("sha"));
            (needed("project_path")?, text("job_id"), source)
        }
    };
    if !settings.accepts(path) {
        return Err(format!("its repository {} is not accepted", short(path)));
    }
    let repo = RepoName::parse(&format!("{}/{path}", settings.host))
        .map_err(|error| format!("its repository is invalid: {error}"))?;
    let run = run.map(|run| format!(" {}", short(run))).unwrap_or_default();
    Ok(CiIdentity {
        org: settings.org.clone(),
        job: format!("CI job{run} of {}", short(path)),
        repo,
        source,
        expires_at: Timestamp::from_unix_seconds(end),
    })
}

/// What a job tests, by the reference and the commit that its token names.
fn source(is_of_branch: bool, reference: Option<&str>, sha: Option<&str>) -> ProvenSource {
    let branch = reference.and_then(|it| it.strip_prefix("refs/heads/"));
    match (branch.filter(|_| is_of_branch), sha) {
        (Some(name), Some(sha)) => {
            ProvenSource::Branch { name: name.to_owned(), sha: sha.to_owned() }
        }
        _ => ProvenSource::PullRequest { number: reference.and_then(number) },
    }
}

/// The pull request of `refs/pull/N/merge` or `refs/merge-requests/N/head`.
fn number(reference: &str) -> Option<PrNumber> {
    let rest = ["refs/pull/", "refs/merge-requests/"];
    let rest = rest.into_iter().find_map(|prefix| reference.strip_prefix(prefix))?;
    let number = rest.split('/').next()?.parse().ok()?;
    Some(PrNumber(number)).filter(|it| it.0 > 0)
}

/// A claim for a log: short, and on one line.
fn short(claim: &str) -> String {
    claim.chars().filter(|it| !it.is_control()).take(MAX_CLAIM).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use signalbox_domain::ids::{HostId, OrgSlug};

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn settings(kind: CiKind) -> CiSystem {
        CiSystem {
            kind,
            issuer: "https://ci.test".into(),
            audience: "https://box.test".into(),
            org: OrgSlug::new("acme").expect("a slug"),
            host: HostId::new("git.test").expect("a host"),
            repositories: vec!["Acme".into(), "other/calc".into()],
        }
    }

    fn read(kind: CiKind, changes: Value) -> Result<CiIdentity, String> {
        let mut claims = match kind {
            CiKind::Actions => json!({
                "iss": "https://ci.test", "aud": "https://box.test", "exp": NOW + 300, "iat": NOW,
                "repository": "acme/calc", "ref": "refs/heads/main", "sha": "ab", "run_id": "17",
                "event_name": "push"
            }),
            CiKind::Pipelines => json!({
                "iss": "https://ci.test", "aud": ["https://box.test"], "exp": NOW + 300,
                "project_path": "acme/calc", "ref_path": "refs/heads/main", "sha": "ab",
                "job_id": "17", "pipeline_source": "push"
            }),
        };
        if let (Value::Object(all), Value::Object(changes)) = (&mut claims, changes) {
            all.extend(changes);
        }
        job(&claims, &settings(kind), Timestamp::from_unix_seconds(NOW))
    }

    #[test]
    fn a_job_is_known_by_its_repository_and_its_branch() {
        for kind in [CiKind::Actions, CiKind::Pipelines] {
            let job = read(kind, json!({})).expect("a job");
            assert_eq!(
                (job.repo.to_string().as_str(), job.org.as_str()),
                ("git.test/acme/calc", "acme")
            );
            assert_eq!(job.job, "CI job 17 of acme/calc");
            let main = ProvenSource::Branch { name: "main".into(), sha: "ab".into() };
            assert_eq!(job.source, main);
            assert_eq!(job.expires_at, Timestamp::from_unix_seconds(NOW + 300));
        }
    }

    #[test]
    fn only_events_of_the_branch_s_own_code_prove_a_branch() {
        let by = |kind, changes| read(kind, changes).expect("a job").source;
        let unknown = ProvenSource::PullRequest { number: None };
        for event in ["pull_request_target", "workflow_run", "workflow_dispatch", "create", ""] {
            let source = by(CiKind::Actions, json!({"event_name": event}));
            assert_eq!(source, unknown, "{event}");
        }
        for reference in ["refs/pull/0/merge", "refs/tags/v1", "main", ""] {
            let source = by(CiKind::Actions, json!({"ref": reference}));
            assert_eq!(source, unknown, "{reference}");
        }
        let seven = ProvenSource::PullRequest { number: Some(PrNumber(7)) };
        let pull = json!({"event_name": "pull_request", "ref": "refs/pull/7/merge"});
        assert_eq!(by(CiKind::Actions, pull), seven);
        let merge = json!({"ref_path": "refs/merge-requests/7/head"});
        assert_eq!(by(CiKind::Pipelines, merge), seven);
        for changes in [
            json!({"pipeline_source": "merge_request_event"}),
            json!({"pipeline_source": "external_pull_request_event"}),
            json!({"pipeline_source": "parent_pipeline"}),
            json!({"pipeline_source": "trigger"}),
            json!({"sha": null}),
        ] {
            let source = by(CiKind::Pipelines, changes.clone());
            assert_eq!(source, unknown, "{changes}");
        }
    }

    #[test]
    fn what_is_not_meant_for_us_is_refused_with_the_rule() {
        for (changes, rule) in [
            (json!({"iss": "https://other.test"}), "another issuer"),
            (json!({"aud": "https://other.test"}), "its audience is another"),
            (json!({"aud": null}), "its audience is another"),
            (json!({"exp": NOW - 61}), "expired"),
            (json!({"exp": null}), "expired"),
            (json!({"exp": NOW + 25 * 3600}), "more than a day"),
            (json!({"iat": NOW + 61}), "not valid yet"),
            (json!({"repository": "acmes/calc"}), "acmes/calc is not accepted"),
            (json!({"repository": "other/calculator"}), "not accepted"),
            (json!({"repository": null}), "no claim `repository`"),
            (json!({"repository": "acme"}), "its repository is invalid"),
            (json!({"repository": "acme/../x"}), "its repository is invalid"),
        ] {
            let refusal = read(CiKind::Actions, changes.clone()).expect_err("refused");
            assert!(refusal.contains(rule), "{changes}: {refusal}");
        }
        assert!(read(CiKind::Actions, json!({"repository": "Other/Calc"})).is_ok());
    }
}
