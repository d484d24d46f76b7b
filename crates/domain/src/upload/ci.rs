//! What the variables of a CI system say about a run.

use std::collections::BTreeMap;

use crate::ids::PrNumber;

/// A CI system: how it is recognized, and which variables say what. Of several variables the first
/// that is set counts.
struct Provider {
    name: &'static str,
    marker: &'static str,
    branch: &'static [&'static str],
    pr: &'static [&'static str],
    /// Addresses with variables in braces; one whose variables are not all set is passed over.
    job_url: &'static [&'static str],
    job_name: &'static [&'static str],
    /// What identifies a job and its matrix entry; the first must be set.
    job: &'static [&'static str],
    /// Where the variables do not name the matrix entry: what identifies an attempt of the job; all
    /// must be set.
    attempt: &'static [&'static str],
    /// A variable that names the matrix entry if the workflow sets it.
    entry: Option<&'static str>,
    /// The commit that the job checks out: of a pull request often a merge commit.
    revision: &'static [&'static str],
    author: &'static [&'static str],
}

/// In the order in which they are recognized. Cloud Build comes before Jenkins, whose marker it
/// sets too.
const PROVIDERS: &[Provider] = &[
    Provider {
        name: "custom",
        marker: "CUSTOM",
        branch: &["COMMIT_BRANCH"],
        pr: &["PR_NUMBER"],
        job_url: &["{JOB_URL}"],
        job_name: &["JOB_NAME"],
        job: &["JOB_NAME"],
        attempt: &[],
        entry: None,
        revision: &[],
        author: &["AUTHOR_NAME"],
    },
    Provider {
        name: "github",
        marker: "GITHUB_ACTIONS",
        branch: &["GITHUB_HEAD_REF", "GITHUB_REF"],
        pr: &["GITHUB_REF"],
        job_url: &[
            "{JOB_URL}",
            "https://github.com/{GITHUB_REPOSITORY}/actions/runs/{GITHUB_RUN_ID}",
        ],
        job_name: &["GITHUB_JOB"],
        job: &["GITHUB_JOB", "GITHUB_WORKFLOW", "RUNNER_OS", "RUNNER_ARCH", "JOB_NAME"],
        attempt: &["GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT"],
        entry: Some("JOB_NAME"),
        revision: &["GITHUB_SHA"],
        author: &["GITHUB_ACTOR"],
    },
    Provider {
        name: "google",
        marker: "TRIGGER_NAME",
        branch: &["_HEAD_BRANCH", "BRANCH_NAME"],
        pr: &["_PR_NUMBER"],
        job_url: &["https://console.cloud.google.com/cloud-build/builds/{BUILD_ID}"],
        job_name: &["TRIGGER_NAME"],
        job: &["TRIGGER_NAME"],
        attempt: &[],
        entry: None,
        revision: &["COMMIT_SHA"],
        author: &[],
    },
    Provider {
        name: "jenkins",
        marker: "BUILD_ID",
        branch: &["CHANGE_BRANCH", "BRANCH_NAME"],
        pr: &["CHANGE_ID"],
        job_url: &["{BUILD_URL}"],
        job_name: &["JOB_NAME"],
        job: &["JOB_NAME"],
        attempt: &["BUILD_ID"],
        entry: None,
        revision: &["GIT_COMMIT"],
        author: &["CHANGE_AUTHOR_DISPLAY_NAME"],
    },
    Provider {
        name: "circleci",
        marker: "CIRCLECI",
        branch: &["CIRCLE_BRANCH"],
        pr: &["CIRCLE_PR_NUMBER", "CIRCLE_PULL_REQUEST"],
        job_url: &[
            "https://app.circleci.com/pipelines/{CIRCLE_PIPELINE_ID}/workflows/{CIRCLE_WORKFLOW_ID}/jobs/{CIRCLE_BUILD_NUM}",
            "{CIRCLE_BUILD_URL}",
        ],
        job_name: &["CIRCLE_JOB"],
        job: &["CIRCLE_JOB"],
        attempt: &[],
        entry: None,
        revision: &["CIRCLE_SHA1"],
        author: &["CIRCLE_USERNAME"],
    },
    Provider {
        name: "buildkite",
        marker: "BUILDKITE",
        branch: &["BUILDKITE_BRANCH"],
        pr: &["BUILDKITE_PULL_REQUEST"],
        job_url: &["{BUILDKITE_BUILD_URL}#{BUILDKITE_JOB_ID}", "{BUILDKITE_BUILD_URL}"],
        job_name: &["BUILDKITE_LABEL"],
        job: &["BUILDKITE_LABEL", "BUILDKITE_PIPELINE_SLUG"],
        attempt: &[],
        entry: None,
        revision: &["BUILDKITE_COMMIT"],
        author: &["BUILDKITE_BUILD_AUTHOR"],
    },
    Provider {
        name: "semaphore",
        marker: "SEMAPHORE",
        branch: &["SEMAPHORE_GIT_PR_BRANCH", "SEMAPHORE_GIT_BRANCH"],
        pr: &["SEMAPHORE_GIT_PR_NUMBER"],
        job_url: &["{SEMAPHORE_ORGANIZATION_URL}/jobs/{SEMAPHORE_JOB_ID}"],
        job_name: &["SEMAPHORE_JOB_NAME"],
        job: &["SEMAPHORE_JOB_NAME", "SEMAPHORE_PROJECT_NAME"],
        attempt: &[],
        entry: None,
        revision: &["SEMAPHORE_GIT_SHA"],
        author: &["SEMAPHORE_GIT_COMMIT_AUTHOR"],
    },
    Provider {
        name: "travis",
        marker: "TRAVIS",
        branch: &["TRAVIS_PULL_REQUEST_BRANCH", "TRAVIS_BRANCH"],
        pr: &["TRAVIS_PULL_REQUEST"],
        job_url: &["{TRAVIS_JOB_WEB_URL}"],
        job_name: &["TRAVIS_JOB_NAME"],
        job: &["TRAVIS_JOB_NAME", "TRAVIS_OS_NAME", "TRAVIS_CPU_ARCH", "TRAVIS_DIST"],
        attempt: &[],
        entry: None,
        revision: &["TRAVIS_COMMIT"],
        author: &[],
    },
    Provider {
        name: "bitbucket",
        marker: "BITBUCKET_BUILD_NUMBER",
        branch: &["BITBUCKET_BRANCH"],
        pr: &["BITBUCKET_PR_ID"],
        job_url: &[
            "https://bitbucket.org/{BITBUCKET_REPO_FULL_NAME}/pipelines/results/{BITBUCKET_BUILD_NUMBER}",
        ],
        job_name: &[],
        job: &[],
        attempt: &[],
        entry: None,
        revision: &[],
        author: &[],
    },
    Provider {
        name: "azure",
        marker: "TF_BUILD",
        branch: &["SYSTEM_PULLREQUEST_SOURCEBRANCH", "BUILD_SOURCEBRANCH"],
        pr: &["SYSTEM_PULLREQUEST_PULLREQUESTNUMBER", "SYSTEM_PULLREQUEST_PULLREQUESTID"],
        job_url: &[
            "{SYSTEM_COLLECTIONURI}{SYSTEM_TEAMPROJECT}/_build/results?buildId={BUILD_BUILDID}",
        ],
        job_name: &["AGENT_JOBNAME"],
        job: &["AGENT_JOBNAME", "BUILD_DEFINITIONNAME", "AGENT_OS"],
        attempt: &[],
        entry: None,
        revision: &["BUILD_SOURCEVERSION"],
        author: &["BUILD_REQUESTEDFOR"],
    },
    Provider {
        name: "gitlab",
        marker: "GITLAB_CI",
        branch: &["CI_COMMIT_REF_NAME", "CI_COMMIT_BRANCH", "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME"],
        pr: &["CI_MERGE_REQUEST_IID"],
        job_url: &["{CI_JOB_URL}"],
        job_name: &["CI_JOB_NAME"],
        job: &["CI_JOB_NAME", "CI_JOB_STAGE"],
        attempt: &[],
        entry: None,
        revision: &["CI_COMMIT_SHA"],
        author: &["CI_COMMIT_AUTHOR", "GITLAB_USER_NAME"],
    },
    Provider {
        name: "drone",
        marker: "DRONE",
        branch: &["DRONE_SOURCE_BRANCH", "DRONE_BRANCH"],
        pr: &["DRONE_PULL_REQUEST"],
        job_url: &["{DRONE_BUILD_LINK}"],
        job_name: &["DRONE_STEP_NAME", "DRONE_STAGE_NAME"],
        job: &["DRONE_STAGE_NAME", "DRONE_STEP_NAME", "DRONE_STAGE_OS", "DRONE_STAGE_ARCH"],
        attempt: &[],
        entry: None,
        revision: &["DRONE_COMMIT_SHA"],
        author: &["DRONE_COMMIT_AUTHOR_NAME", "DRONE_COMMIT_AUTHOR"],
    },
    Provider {
        name: "bamboo",
        marker: "bamboo_buildNumber",
        branch: &["bamboo_planRepository_branchName", "bamboo_planRepository_branch"],
        pr: &["bamboo_repository_pr_key"],
        job_url: &["{bamboo_buildResultsUrl}", "{bamboo_resultsUrl}"],
        job_name: &["bamboo_shortJobName"],
        job: &["bamboo_shortJobName", "bamboo_planName"],
        attempt: &[],
        entry: None,
        revision: &["bamboo_planRepository_revision"],
        author: &[],
    },
];

/// What a CI system says about a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CiRun {
    /// The system's name; `None` when none is recognized.
    pub provider: Option<&'static str>,
    /// The branch, cleaned.
    pub branch: Option<String>,
    /// The pull request.
    pub pr: Option<PrNumber>,
    /// The job's page.
    pub job_url: Option<String>,
    /// The job's name.
    pub job_name: Option<String>,
    /// What identifies the job: the system, the job, the workflow, the runner's system; empty when it
    /// is unknown.
    pub job: Vec<String>,
    /// What identifies the attempt of a job whose matrix entry is unknown; empty when that is known.
    pub attempt: Vec<String>,
    /// The commit that the job checks out.
    pub revision: Option<String>,
    /// Who wrote the commit.
    pub author: Option<String>,
    /// Whether it is a run of GitLab's merge trains.
    pub merge_train: bool,
}

impl CiRun {
    /// Reads the variables of a run. Empty ones count as not set.
    pub fn of(variables: &BTreeMap<String, String>) -> Self {
        let get =
            |name: &str| variables.get(name).map(|it| it.trim()).filter(|value| !value.is_empty());
        // An explicit number takes precedence.
        let given = get("TRUNK_PR_NUMBER").and_then(number);
        let Some(provider) = PROVIDERS.iter().find(|it| get(it.marker).is_some()) else {
            return Self { pr: given, ..Self::default() };
        };
        let first = |names: &[&str]| names.iter().find_map(|name| get(name)).map(str::to_owned);
        let pr = given.or_else(|| provider.pr.iter().find_map(|name| number(get(name)?)));
        let mut job_url = provider.job_url.iter().find_map(|it| filled(it, get));
        if let (Some(url), Some(pr)) = (&mut job_url, pr)
            && provider.name == "github"
            && get("JOB_URL").is_none()
        {
            *url = format!("{url}?pr={pr}");
        }
        Self {
            provider: Some(provider.name),
            branch: first(provider.branch).map(|branch| clean_branch(&branch)),
            pr,
            job_url,
            job_name: first(provider.job_name),
            job: job(provider, get),
            attempt: attempt(provider, get),
            revision: first(provider.revision),
            author: first(provider.author),
            merge_train: provider.name == "gitlab"
                && get("CI_MERGE_REQUEST_EVENT_TYPE") == Some("merge_train"),
        }
    }
}

/// What identifies a job. The position of a value matters, so unset ones are empty.
fn job<'a>(provider: &Provider, get: impl Fn(&str) -> Option<&'a str>) -> Vec<String> {
    if provider.job.first().is_none_or(|name| get(name).is_none()) {
        return Vec::new();
    }
    let values = provider.job.iter().map(|name| get(name).unwrap_or_default());
    [provider.name].into_iter().chain(values).map(str::to_owned).collect()
}

fn attempt<'a>(provider: &Provider, get: impl Fn(&str) -> Option<&'a str>) -> Vec<String> {
    if provider.entry.is_some_and(|name| get(name).is_some()) {
        return Vec::new();
    }
    let values: Option<Vec<&str>> = provider.attempt.iter().map(|name| get(name)).collect();
    values.unwrap_or_default().into_iter().map(str::to_owned).collect()
}

/// A branch without `refs/heads/`, `refs/` and `origin/` in front.
pub fn clean_branch(name: &str) -> String {
    let name = name.trim();
    let name =
        name.strip_prefix("refs/heads/").or_else(|| name.strip_prefix("refs/")).unwrap_or(name);
    name.strip_prefix("origin/").unwrap_or(name).to_owned()
}

/// The number of a pull request: as it is, at the end of an address, or in `refs/pull/N/merge`.
/// Words such as `false` are none.
pub(super) fn number(text: &str) -> Option<PrNumber> {
    let in_ref = text.trim_start_matches("refs/").trim_start_matches("remotes/");
    let text = match in_ref.strip_prefix("pull/") {
        Some(rest) => rest.split('/').next()?,
        None if text.contains("://") => text.trim_end_matches('/').rsplit('/').next()?,
        None => text,
    };
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| digits && *number > 0).map(PrNumber)
}

/// A text with variables in braces filled in; `None` when one is not set.
fn filled<'a>(template: &str, get: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}')?;
        text += before;
        text += get(name)?;
        rest = after;
    }
    Some(text + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(variables: &[(&str, &str)]) -> CiRun {
        let owned = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        CiRun::of(&owned.collect())
    }

    #[test]
    fn a_pull_request_on_github() {
        let ci = run(&[
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_REF", "refs/pull/7/merge"),
            ("GITHUB_HEAD_REF", "fix"),
            ("GITHUB_REPOSITORY", "acme/calc"),
            ("GITHUB_RUN_ID", "12"),
        ]);
        assert_eq!((ci.branch.as_deref(), ci.pr), (Some("fix"), Some(PrNumber(7))));
        let url = "https://github.com/acme/calc/actions/runs/12?pr=7";
        assert_eq!(ci.job_url.as_deref(), Some(url));
    }

    #[test]
    fn a_push_on_github_has_no_pull_request() {
        let ci = run(&[
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_REF", "refs/heads/main"),
            ("GITHUB_HEAD_REF", ""),
            ("JOB_URL", "https://ci/1"),
        ]);
        assert_eq!((ci.branch.as_deref(), ci.pr), (Some("main"), None));
        assert_eq!(ci.job_url.as_deref(), Some("https://ci/1"));
    }

    #[test]
    fn other_systems_say_it_in_their_own_words() {
        let ci = run(&[
            ("BUILDKITE", "true"),
            ("BUILDKITE_BRANCH", "main"),
            ("BUILDKITE_PULL_REQUEST", "false"),
            ("BUILDKITE_BUILD_URL", "https://b/1"),
            ("BUILDKITE_JOB_ID", "j"),
        ]);
        assert_eq!((ci.pr, ci.job_url.as_deref()), (None, Some("https://b/1#j")));
        let ci = run(&[
            ("CIRCLECI", "true"),
            ("CIRCLE_BRANCH", "fix"),
            ("CIRCLE_PULL_REQUEST", "https://github.com/acme/calc/pull/9"),
        ]);
        assert_eq!((ci.pr, ci.job_url), (Some(PrNumber(9)), None));
        let ci = run(&[
            ("GITLAB_CI", "true"),
            ("CI_COMMIT_REF_NAME", "refs/merge-requests/3/train"),
            ("CI_MERGE_REQUEST_IID", "3"),
            ("CI_MERGE_REQUEST_EVENT_TYPE", "merge_train"),
        ]);
        assert!(ci.merge_train && ci.pr == Some(PrNumber(3)));
        assert_eq!(run(&[("TRIGGER_NAME", "t"), ("BUILD_ID", "b")]).provider, Some("google"));
        assert_eq!(run(&[("BUILD_ID", "b"), ("CHANGE_ID", "4")]).pr, Some(PrNumber(4)));
    }

    #[test]
    fn a_job_is_known_by_workflow_name_and_system() {
        let github = |system: &str, entry: &str| {
            run(&[
                ("GITHUB_ACTIONS", "true"),
                ("GITHUB_JOB", "unit"),
                ("GITHUB_WORKFLOW", "CI"),
                ("GITHUB_SHA", "abc"),
                ("GITHUB_RUN_ID", "12"),
                ("GITHUB_RUN_ATTEMPT", "2"),
                ("RUNNER_OS", system),
                ("JOB_NAME", entry),
            ])
        };
        let linux = github("Linux", "");
        assert_eq!(linux.job, ["github", "unit", "CI", "Linux", "", ""]);
        assert_eq!(
            (&linux.attempt, linux.revision.as_deref()),
            (&vec!["12".into(), "2".into()], Some("abc"))
        );
        assert_ne!(linux.job, github("Windows", "").job);
        let named = github("Linux", "unit (3.12)");
        assert!(named.attempt.is_empty(), "its matrix entry is known");
        assert_ne!(linux.job, named.job);
        assert!(run(&[("GITHUB_ACTIONS", "true"), ("RUNNER_OS", "Linux")]).job.is_empty());
        let gitlab = run(&[("GITLAB_CI", "true"), ("CI_JOB_NAME", "unit: [3.12]")]);
        assert_eq!(
            (gitlab.job, gitlab.attempt.len()),
            (vec!["gitlab".into(), "unit: [3.12]".into(), String::new()], 0)
        );
    }

    #[test]
    fn an_explicit_number_takes_precedence() {
        let ci = run(&[
            ("TRUNK_PR_NUMBER", "5"),
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_REF", "refs/pull/7/merge"),
        ]);
        assert_eq!(ci.pr, Some(PrNumber(5)));
        assert_eq!(run(&[("TRUNK_PR_NUMBER", "5")]).pr, Some(PrNumber(5)));
        assert_eq!(run(&[]), CiRun::default());
    }

    #[test]
    fn branches_lose_what_git_puts_in_front() {
        for (name, clean) in [
            ("refs/heads/main", "main"),
            ("origin/main", "main"),
            ("refs/pull/7/merge", "pull/7/merge"),
            ("refs/heads/origin/x", "x"),
            ("feature/origin/x", "feature/origin/x"),
        ] {
            assert_eq!(clean_branch(name), clean);
        }
    }
}
