//! The claims of an identity token, and whether they are for this client and valid now.

use serde_json::Value;
use signalbox_domain::identity::Identity;
use signalbox_domain::time::Timestamp;

/// How far the provider's clock may be from ours.
const SKEW_SECONDS: i64 = 60;
/// The most values of the claim with groups.
const MAX_GROUPS: usize = 1_000;

/// The expected claims of a token.
pub(crate) struct Expected<'a> {
    pub(crate) issuer: &'a str,
    pub(crate) client: &'a str,
    pub(crate) nonce: &'a str,
    pub(crate) now: Timestamp,
}

/// Checks the issuer, the audience and the times of a token; returns its audiences, or the rule that
/// it breaks.
pub(crate) fn check_validity<'a>(
    claims: &'a Value,
    issuer: &str,
    audience: &str,
    now: Timestamp,
) -> Result<Vec<&'a str>, &'static str> {
    if claims.get("iss").and_then(Value::as_str) != Some(issuer) {
        return Err("it was issued by another issuer");
    }
    let audiences: Vec<&str> = match claims.get("aud") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !audiences.contains(&audience) {
        return Err("its audience is another client");
    }
    let now = now.unix_micros() / 1_000_000;
    let seconds = |name: &str| claims.get(name).and_then(Value::as_f64);
    #[expect(clippy::cast_precision_loss, reason = "seconds of this age are exact")]
    let (earliest, latest) = ((now - SKEW_SECONDS) as f64, (now + SKEW_SECONDS) as f64);
    if !seconds("exp").is_some_and(|end| end > earliest) {
        return Err("it has expired");
    }
    if seconds("iat").is_some_and(|made| made > latest)
        || seconds("nbf").is_some_and(|begin| begin > latest)
    {
        return Err("it is not valid yet");
    }
    Ok(audiences)
}

/// Who a token is about; the rule that it breaks.
pub(crate) fn identity(
    claims: &Value,
    expected: &Expected<'_>,
    groups: &str,
) -> Result<Identity, &'static str> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str).filter(|it| !it.is_empty());
    let audience = check_validity(claims, expected.issuer, expected.client, expected.now)?;
    match text("azp") {
        Some(party) if party != expected.client => return Err("it was issued to another client"),
        None if audience.len() > 1 => {
            return Err("it has several audiences and no authorized party");
        }
        _ => {}
    }
    if text("nonce") != Some(expected.nonce) {
        return Err("its nonce is wrong");
    }
    let subject = text("sub").ok_or("it has no subject")?.to_owned();
    let name = ["name", "preferred_username"].into_iter().find_map(text);
    let verified = claims.get("email_verified");
    let verified =
        verified.is_some_and(|it| *it == Value::Bool(true) || it.as_str() == Some("true"));
    Ok(Identity {
        name: name.unwrap_or(&subject).to_owned(),
        email: text("email").filter(|_| verified).map(ToOwned::to_owned),
        groups: values(claims, groups),
        subject,
    })
}

/// The values of a claim; of one inside others when its name has dots: `realm_access.roles`.
fn values(claims: &Value, name: &str) -> Vec<String> {
    let nested = || name.split('.').try_fold(claims, |at, part| at.get(part));
    match claims.get(name).or_else(nested) {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(all)) => {
            let texts = all.iter().filter_map(Value::as_str);
            texts.take(MAX_GROUPS).map(ToOwned::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn claims() -> Value {
        json!({
            "iss": "https://id.test", "aud": "box", "sub": "7", "nonce": "n", "exp": NOW + 300,
            "iat": NOW, "name": "Ada", "email": "ada@a.test", "email_verified": true,
            "groups": ["dev", 5], "realm_access": {"roles": ["ops"]},
        })
    }

    fn read(changes: Value) -> Result<Identity, &'static str> {
        let mut claims = claims();
        if let (Value::Object(all), Value::Object(changes)) = (&mut claims, changes) {
            all.extend(changes);
        }
        let now = Timestamp::from_unix_seconds(NOW);
        let expected = Expected { issuer: "https://id.test", client: "box", nonce: "n", now };
        identity(&claims, &expected, "groups")
    }

    #[test]
    fn a_valid_token_identifies_its_user() {
        let who = read(json!({})).expect("it is valid");
        assert_eq!((who.subject.as_str(), who.name.as_str()), ("7", "Ada"));
        assert_eq!(who.email.as_deref(), Some("ada@a.test"));
        assert_eq!(who.groups, ["dev"]);
        assert_eq!(values(&claims(), "realm_access.roles"), ["ops"]);
        let plain = read(json!({"name": null, "email_verified": false})).expect("it is valid");
        assert_eq!((plain.name.as_str(), plain.email), ("7", None));
        assert!(read(json!({"aud": ["other", "box"], "azp": "box"})).is_ok());
        assert!(read(json!({"exp": NOW - 30})).is_ok(), "clocks differ a little");
    }

    #[test]
    fn a_token_that_breaks_a_rule_is_refused() {
        for (change, rule) in [
            (json!({"iss": "https://id.test/"}), "another issuer"),
            (json!({"iss": null}), "another issuer"),
            (json!({"aud": "other"}), "another client"),
            (json!({"aud": []}), "another client"),
            (json!({"aud": ["box", "other"]}), "several"),
            (json!({"azp": "other"}), "issued to another client"),
            (json!({"exp": NOW - 61}), "expired"),
            (json!({"exp": null}), "expired"),
            (json!({"exp": "never"}), "expired"),
            (json!({"iat": NOW + 61}), "not valid yet"),
            (json!({"nbf": NOW + 61}), "not valid yet"),
            (json!({"nonce": "m"}), "nonce is wrong"),
            (json!({"nonce": null}), "nonce is wrong"),
            (json!({"sub": ""}), "no subject"),
        ] {
            let error = read(change.clone()).expect_err(rule);
            assert!(error.contains(rule), "{change}: {error}");
        }
    }
}
