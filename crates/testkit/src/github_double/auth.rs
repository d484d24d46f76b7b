//! Authentication: an app by its JSON Web Token, an installation by its token, or a user by a
//! personal token.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use serde_json::{Value, json};

use super::state::{Reply, State};

/// An authenticated caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// The app itself.
    App(u64),
    /// An installation of the app.
    Installation(u64),
    /// A user.
    Person(String),
}

pub(super) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

impl State {
    /// The caller of a token, or the error message.
    pub(super) fn caller(&self, authorization: &str, now: i64) -> Result<Caller, String> {
        let (scheme, token) = authorization.split_once(' ').ok_or("Requires authentication")?;
        if !["bearer", "token"].contains(&scheme.to_lowercase().as_str()) {
            return Err("Requires authentication".to_owned());
        }
        if let Some((login, known)) = &self.personal
            && token == known
        {
            return Ok(Caller::Person(login.clone()));
        }
        if let Some((app, key)) = &self.app {
            if self.tokens.contains(token) {
                return Ok(Caller::Installation(*app));
            }
            if token.split('.').count() == 3 {
                return signed_by_app(token, *app, key, now).map(|()| Caller::App(*app));
            }
        }
        Err("Bad credentials".to_owned())
    }

    /// apps/create-installation-access-token
    pub(super) fn installation_token(&mut self, now: i64) -> Reply {
        let token = format!("ghs_{}", self.next_id());
        self.tokens.insert(token.clone());
        let until = signalbox_domain::time::Timestamp::from_unix_seconds(now + 3_600);
        Reply::new(201, json!({"token": token, "expires_at": until.to_string()}))
    }

    /// apps/get-authenticated
    pub(super) fn own_app(&self, id: u64) -> Reply {
        Reply::new(
            200,
            json!({
                "id": id, "slug": "signalbox-test", "permissions": self.app_permissions["permissions"],
                "events": self.app_permissions["events"],
            }),
        )
    }
}

/// Verifies a JSON Web Token as GitHub does: signature, issuer and times.
fn signed_by_app(token: &str, app: u64, key: &[u8], now: i64) -> Result<(), String> {
    let (signed, signature) = token.rsplit_once('.').ok_or("no signature")?;
    let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|error| error.to_string())?;
    let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key);
    let verified = key.verify(signed.as_bytes(), &signature);
    verified.map_err(|_| "A JSON web token could not be decoded".to_owned())?;
    let (_, claims) = signed.split_once('.').ok_or("no claims")?;
    let claims = URL_SAFE_NO_PAD.decode(claims).map_err(|error| error.to_string())?;
    let claims: Value = serde_json::from_slice(&claims).map_err(|error| error.to_string())?;
    let (issued, expires) = (claims["iat"].as_i64(), claims["exp"].as_i64());
    let times = issued.zip(expires).ok_or("'Expiration time' claim is missing")?;
    if claims["iss"].as_str() != Some(&app.to_string()) {
        return Err("'Issuer' claim ('iss') must be an Integer".to_owned());
    }
    if times.0 > now + 5 || times.1 <= now || times.1 - times.0 > 660 || times.1 > now + 600 {
        return Err("'Expiration time' claim ('exp') is too far in the future".to_owned());
    }
    Ok(())
}
