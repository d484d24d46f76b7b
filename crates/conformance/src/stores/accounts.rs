//! The contract of the stores of organizations, tokens, repositories and check output.

use signalbox_domain::ids::{OrgId, OrgSlug, RepoId, RepoName, RunId, TokenId};
use signalbox_domain::ports::{CheckOutput, MAX_CHECK_OUTPUT, Org, Repository, Stores};
use signalbox_domain::time::Timestamp;
use signalbox_domain::token::{Compatibility, Scope, Token, TokenText};
use uuid::Uuid;

use super::{Sample, at};

/// A slug belongs to the first organization with it.
pub async fn a_slug_belongs_to_its_first_organization(stores: &Stores) {
    let first = Sample::org(stores, "acme").await;
    let second = Org { id: OrgId(Uuid::new_v4()), slug: first.slug.clone(), created_at: at(5) };
    assert_eq!(stores.account.orgs.create(&second).await.expect("the first one"), first);
    assert_eq!(stores.account.orgs.find(first.id).await.expect("a read"), Some(first.clone()));
    assert_eq!(
        stores.account.orgs.find_by_slug(&first.slug).await.expect("a read"),
        Some(first.clone())
    );
    let unknown = OrgSlug::new("other").expect("a slug");
    assert_eq!(stores.account.orgs.find_by_slug(&unknown).await.expect("a read"), None);
    assert_eq!(stores.account.orgs.list().await.expect("a list"), [first]);
}

async fn token(stores: &Stores) -> Token {
    let token = unwritten_token(stores).await;
    stores.account.tokens.insert(&token).await.expect("a token");
    token
}

async fn unwritten_token(stores: &Stores) -> Token {
    Token {
        id: TokenId(Uuid::new_v4()),
        org: Sample::org(stores, "acme").await.id,
        name: "ci".into(),
        hash: TokenText::from_random([3; 20]).hash(),
        scopes: vec![Scope::QueueRead, Scope::QueueSubmit],
        repos: vec![RepoName::new("git.local", "acme", "calc").expect("a name")],
        compatibility: Compatibility::V1Live,
        created_at: at(0),
        expires_at: Some(at(100)),
        revoked_at: None,
    }
}

/// A token is read back unchanged; another hash finds nothing.
pub async fn a_token_is_found_by_its_hash_unchanged(stores: &Stores) {
    let token = token(stores).await;
    let found = stores.account.tokens.find_by_hash(token.hash).await.expect("a read");
    assert_eq!(found, Some(token.clone()));
    let other = TokenText::from_random([4; 20]).hash();
    assert_eq!(stores.account.tokens.find_by_hash(other).await.expect("a read"), None);
    assert_eq!(stores.account.tokens.list(Some(token.org)).await.expect("a list"), [token]);
    let stranger = OrgId(Uuid::new_v4());
    assert!(stores.account.tokens.list(Some(stranger)).await.expect("a list").is_empty());
}

/// Times keep their microseconds over their whole range, and are compared with them.
pub async fn times_keep_their_microseconds(stores: &Stores) {
    let now = 1_767_225_600_123_456;
    let times = [i64::MIN, -1, 0, 1, now, now + 1, i64::MAX - 1, i64::MAX];
    let mut written = Vec::new();
    for (number, micros) in times.into_iter().enumerate() {
        let mut token = unwritten_token(stores).await;
        let digit = u8::try_from(number).expect("few");
        token.id = TokenId(Uuid::new_v4());
        token.hash = TokenText::from_random([100 + digit; 20]).hash();
        token.org = Sample::org(stores, "times").await.id;
        token.created_at = Timestamp::from_unix_micros(micros);
        token.expires_at = Some(token.created_at);
        stores.account.tokens.insert(&token).await.expect("a token");
        let found = stores.account.tokens.find_by_hash(token.hash).await.expect("a read");
        assert_eq!(found, Some(token.clone()));
        written.push(token);
    }
    written.reverse();
    let org = written[0].org;
    assert_eq!(
        stores.account.tokens.list(Some(org)).await.expect("a list"),
        written,
        "newest first"
    );
}

/// A second revocation does not extend a token.
pub async fn a_revoked_token_keeps_the_earlier_time(stores: &Stores) {
    let token = token(stores).await;
    let revoked = async |seconds| {
        assert!(
            stores
                .account
                .tokens
                .revoke(token.id, at(seconds), Uuid::new_v4())
                .await
                .expect("revoked")
        );
        let found = stores.account.tokens.find_by_hash(token.hash).await.expect("a read");
        found.expect("a token").revoked_at
    };
    assert_eq!(revoked(50).await, Some(at(50)));
    assert_eq!(revoked(60).await, Some(at(50)));
    assert_eq!(revoked(40).await, Some(at(40)));
    assert!(
        !stores
            .account
            .tokens
            .revoke(TokenId(Uuid::new_v4()), at(1), Uuid::new_v4())
            .await
            .expect("an answer")
    );
}

/// The id of the last revocation is replaced by each revocation of a token, and only then.
pub async fn each_revocation_replaces_the_last_one(stores: &Stores) {
    let tokens = &stores.account.tokens;
    let last = async || tokens.last_revocation().await.expect("an id");
    let mut seen = vec![last().await];
    let token = token(stores).await;
    assert!(
        !tokens.revoke(TokenId(Uuid::new_v4()), at(1), Uuid::new_v4()).await.expect("an answer")
    );
    assert_eq!(last().await, seen[0]);
    for seconds in [50, 60, 40] {
        assert!(tokens.revoke(token.id, at(seconds), Uuid::new_v4()).await.expect("revoked"));
        let now = last().await;
        assert!(!seen.contains(&now), "{now}");
        seen.push(now);
    }
}

/// A name is registered once per organization, case-insensitively if the host's names are.
pub async fn a_repository_is_registered_once_and_belongs_to_its_organization(stores: &Stores) {
    let org = Sample::org(stores, "acme").await.id;
    let other = Sample::org(stores, "other").await.id;
    let new = |org, name: &str, path: Option<&str>| Repository {
        id: RepoId(Uuid::new_v4()),
        org,
        name: RepoName::new("git.local", "Acme", name).expect("a name"),
        path: path.map(ToOwned::to_owned),
        created_at: at(0),
    };
    let repos = &stores.account.repos;
    let first = repos.register(&new(org, "Calc", None), true).await.expect("registered");
    let again = repos.register(&new(org, "calc", Some("/srv/calc.git")), true).await;
    let again = again.expect("the first one");
    assert_eq!((again.id, again.name.name.as_str()), (first.id, "Calc"));
    assert_eq!(
        again.path.as_deref(),
        Some("/srv/calc.git"),
        "a given path replaces the stored one"
    );
    let third = repos.register(&new(org, "CALC", None), true).await.expect("the first one");
    assert_eq!(third.path.as_deref(), Some("/srv/calc.git"), "and is kept");
    let theirs = repos.register(&new(other, "calc", None), true).await.expect("registered");
    assert_ne!(theirs.id, first.id);
    let exact = repos.register(&new(org, "Exact", None), false).await.expect("registered");
    let lower = repos.register(&new(org, "exact", None), false).await.expect("registered");
    assert_ne!(exact.id, lower.id);
    let name = RepoName::new("git.local", "ACME", "CALC").expect("a name");
    let found = repos.find_by_name(org, &name, true).await.expect("a read");
    assert_eq!(found.map(|it| it.id), Some(first.id));
    assert_eq!(repos.find_by_name(org, &name, false).await.expect("a read"), None);
    assert_eq!(repos.find(other, first.id).await.expect("a read"), None);
    assert_eq!(repos.list(Some(other)).await.expect("a list"), [theirs]);
}

/// A repository that was registered while its host's names counted as case-insensitive is found
/// when they are case-sensitive, and vice versa.
pub async fn a_repository_outlives_a_change_of_the_rule_for_its_name(stores: &Stores) {
    let org = Sample::org(stores, "acme").await.id;
    let named = |name: &str| RepoName::new("Git.Local", "Acme", name).expect("a name");
    let new = |name: &str| Repository {
        id: RepoId(Uuid::new_v4()),
        org,
        name: named(name),
        path: None,
        created_at: at(0),
    };
    let repos = &stores.account.repos;
    let found = async |name: &str, any_case| {
        let found = repos.find_by_name(org, &named(name), any_case).await.expect("a read");
        found.map(|it| it.id)
    };
    let first = repos.register(&new("Calc"), true).await.expect("registered");
    assert_eq!(first.name.to_string(), "git.local/Acme/Calc", "host names are case-insensitive");
    assert_eq!(found("Calc", false).await, Some(first.id));
    assert_eq!(found("acme", false).await, None);
    assert_eq!(repos.register(&new("Calc"), false).await.expect("the first one").id, first.id);
    // The two differ in case only, so their case-insensitive keys are equal.
    let mut lower = new("calc");
    lower.name.owner = "acme".into();
    let other = repos.register(&lower, false).await.expect("registered");
    assert_ne!(other.id, first.id);
    assert_eq!(found("Calc", false).await, Some(first.id));
    assert_eq!(found("Calc", true).await, Some(first.id), "an exact spelling comes first");
    assert_eq!(found("CALC", true).await, Some(other.id));
    assert_eq!(repos.list(Some(org)).await.expect("a list").len(), 2);
}

/// Concurrent registrations in different spellings create one repository.
pub async fn concurrent_spellings_register_one_repository(stores: &Stores) {
    let org = Sample::org(stores, "acme").await.id;
    // Whether two meet in the middle of a registration is a matter of luck.
    for round in 0..20 {
        spellings_of_one_register_once(stores, org, &format!("widgets-{round}")).await;
    }
    let all = stores.account.repos.list(Some(org)).await.expect("a list");
    assert_eq!(all.len(), 20, "{all:?}");
}

async fn spellings_of_one_register_once(stores: &Stores, org: OrgId, repo: &str) {
    let registering = (0..16_u32).map(|number| {
        let spelt = |text: &str| {
            let upper = |(at, c): (usize, char)| {
                if number >> (at % 4) & 1 == 1 { c.to_ascii_uppercase() } else { c }
            };
            text.chars().enumerate().map(upper).collect::<String>()
        };
        let name = RepoName::new(&spelt("github.com"), spelt("acme"), spelt(repo));
        let new = Repository {
            id: RepoId(Uuid::new_v4()),
            org,
            name: name.expect("a name"),
            path: None,
            created_at: at(0),
        };
        async move { stores.account.repos.register(&new, true).await.expect("registered").id }
    });
    let ids = futures_util::future::join_all(registering).await;
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

/// An output is replaced by a newer one, truncated at the limit, and pruned by age.
pub async fn a_check_output_is_replaced_capped_and_pruned(stores: &Stores) {
    let org = Sample::org(stores, "acme").await.id;
    let run = RunId(Uuid::new_v4());
    let output = |text: String, seconds| CheckOutput {
        org,
        run,
        check: "unit tests".into(),
        text,
        at: at(seconds),
    };
    let log = &stores.queue.check_log;
    assert_eq!(log.written(org, run).await.expect("a read"), None);
    log.write(&output("first".into(), 1)).await.expect("written");
    let other = CheckOutput { check: "lint".into(), ..output("other".into(), 3) };
    log.write(&other).await.expect("written");
    assert_eq!(log.written(org, run).await.expect("a read"), Some(at(3)));
    log.write(&output("second\0".into(), 2)).await.expect("written");
    let kept = log.read(org, run, "unit tests").await.expect("a read").expect("an output");
    assert_eq!((kept.text.as_str(), kept.at), ("second\u{fffd}", at(2)));
    let later = output("second, and more".into(), 4);
    assert!(!log.replace(&later, at(1)).await.expect("an answer"), "another was written since");
    assert!(log.replace(&later, at(2)).await.expect("an answer"));
    assert!(!log.replace(&output("stale".into(), 5), at(2)).await.expect("an answer"));
    let kept = log.read(org, run, "unit tests").await.expect("a read").expect("an output");
    assert_eq!((kept.text.as_str(), kept.at), ("second, and more", at(4)));
    let none = CheckOutput { check: "none".into(), ..output("none".into(), 3) };
    assert!(!log.replace(&none, at(3)).await.expect("an answer"), "there is nothing to replace");
    let kept = log.read(org, run, "lint").await.expect("a read").expect("an output");
    assert_eq!(kept.text, "other");
    assert_eq!(log.read(org, run, "other").await.expect("a read"), None);
    let stranger = OrgId(Uuid::new_v4());
    assert_eq!(log.written(stranger, run).await.expect("a read"), None);
    assert_eq!(log.read(stranger, run, "unit tests").await.expect("a read"), None);
    log.write(&output("ü".repeat(MAX_CHECK_OUTPUT), 3)).await.expect("written");
    let kept = log.read(org, run, "unit tests").await.expect("a read").expect("an output");
    assert_eq!(kept.text.len(), MAX_CHECK_OUTPUT);
    assert_eq!(log.prune(at(3), 10).await.expect("pruned"), 0);
    assert_eq!(log.prune(at(4), 10).await.expect("pruned"), 2);
    assert_eq!(log.written(org, run).await.expect("a read"), None);
    assert_eq!(log.read(org, run, "unit tests").await.expect("a read"), None);
}
