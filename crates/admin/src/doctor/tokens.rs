//! Tokens that may do more than the programs that hold them need.

use signalbox_domain::ports::Stores;
use signalbox_domain::time::Timestamp;
use signalbox_domain::token::{Scope, Token};
use signalbox_terminal::chain;

use super::Finding;

/// Checks every valid token.
pub(super) async fn powers(stores: &Stores, now: Timestamp) -> Vec<Finding> {
    let name = "tokens";
    let tokens = match stores.account.tokens.list(None).await {
        Ok(tokens) => tokens,
        Err(error) => return vec![Finding::bad(name, chain("tokens", &error))],
    };
    let valid: Vec<&Token> = tokens.iter().filter(|token| token.is_valid(now)).collect();
    let excessive = valid.iter().filter_map(|token| {
        let words = format!("token {} ({:?}) {}", token.id, token.name, excess(token)?);
        Some(Finding::warning(name, words))
    });
    let mut found: Vec<Finding> = excessive.collect();
    if found.is_empty() {
        let words = format!("{} valid tokens, none with excessive rights", valid.len());
        found.push(Finding::good(name, words));
    }
    found
}

/// What is excessive about a token.
fn excess(token: &Token) -> Option<&'static str> {
    let may = |scope| token.scopes.contains(&scope);
    let administers = token.scopes.iter().any(|scope| scope.administers());
    if may(Scope::TestsUpload) && may(Scope::TestsAdmin) {
        Some(
            "may upload test results and administer quarantine: in CI, the code of a pull request \
             could excuse its own failures with it; give CI a token with tests:upload",
        )
    } else if may(Scope::ChecksReport) && !administers && token.repos.is_empty() {
        Some(
            "may report checks of every repository: replace it with one that is limited to the \
             repository whose CI holds it",
        )
    } else if administers && token.expires_at.is_none() {
        Some("administers and never expires: replace it with one that does")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use signalbox_domain::ids::{OrgId, RepoName, TokenId};
    use signalbox_domain::token::{Compatibility, TokenText};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn rights_to_judge_ones_own_tests_and_endless_administration_are_excessive() {
        use Scope::{ChecksReport, QueueAdmin, QueueSubmit, TestsAdmin, TestsUpload};
        let seen_in = |repos: &[RepoName], scopes: &[Scope], expires: Option<i64>| {
            let token = Token {
                id: TokenId(Uuid::nil()),
                org: OrgId(Uuid::nil()),
                name: "ci".into(),
                hash: TokenText::from_random([7; 20]).hash(),
                scopes: scopes.to_vec(),
                repos: repos.to_vec(),
                compatibility: Compatibility::Specification,
                created_at: Timestamp::from_unix_seconds(0),
                expires_at: expires.map(Timestamp::from_unix_seconds),
                revoked_at: None,
            };
            excess(&token).is_some()
        };
        let seen = |scopes: &[Scope], expires: Option<i64>| seen_in(&[], scopes, expires);
        assert!(!seen(&Scope::DEFAULT, None));
        let calc = RepoName::parse("git.local/acme/calc").expect("a name");
        assert!(seen(&[ChecksReport], Some(1)) && !seen_in(&[calc], &[ChecksReport], Some(1)));
        assert!(!seen(
            &Scope::ALL.map(|it| if it == TestsUpload { ChecksReport } else { it }),
            Some(1)
        ));
        assert!(!seen(&[TestsUpload, QueueSubmit], None));
        assert!(seen(&[TestsUpload, TestsAdmin], Some(1)));
        for scope in [QueueAdmin, TestsAdmin] {
            assert_eq!((seen(&[scope], None), seen(&[scope], Some(1))), (true, false));
        }
    }
}
