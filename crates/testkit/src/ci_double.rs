//! A CI system that issues identity tokens to its jobs, as GitHub Actions does: a discovery document
//! without the endpoints that users sign in with, a key set, and an address at which a job gets tokens.

use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

use crate::double::{Answer, Fault, Port, Request, Routes, Server};

/// How long a token is valid, in seconds.
const VALID_SECONDS: i64 = 300;

/// A running CI system.
pub struct CiDouble {
    routes: Arc<CiRoutes>,
    server: Server,
    /// Its issuer.
    pub issuer: String,
    /// Where a job gets a token, with the job's credential `job`.
    pub token_url: String,
}

struct CiRoutes {
    issuer: String,
    pair: EcdsaKeyPair,
    /// The claims about the job.
    job: Mutex<Value>,
}

impl CiDouble {
    /// Starts a CI system whose jobs have these claims.
    pub fn start(job: Value) -> Self {
        let port = Port::free();
        let issuer = port.url.clone();
        let (random, kind) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let made = EcdsaKeyPair::generate_pkcs8(kind, &random).expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(kind, made.as_ref(), &random).expect("a key");
        let routes = CiRoutes { issuer: issuer.clone(), pair, job: Mutex::new(job) };
        let routes = Arc::new(routes);
        let server = Server::start(port, routes.clone(), || std::future::ready(()));
        let token_url = format!("{issuer}/token?api-version=2.0");
        Self { routes, server, issuer, token_url }
    }

    /// The next tokens have these claims about the job.
    pub fn set_job(&self, job: Value) {
        *self.routes.job.lock().unwrap_or_else(PoisonError::into_inner) = job;
    }

    /// The next requests whose path contains this get a 503.
    pub fn fail(&self, path_part: &str, times: u32) {
        self.server.plan("", path_part, times, Fault::Status(503));
    }

    /// How many requests came whose path contains this.
    pub fn requests(&self, path_part: &str) -> usize {
        self.server.log().iter().filter(|it| it.path.contains(path_part)).count()
    }

    /// A token for an audience, issued now.
    pub fn token(&self, audience: &str) -> String {
        self.routes.token(audience, now())
    }
}

/// Seconds since 1970.
fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |it| i64::try_from(it.as_secs()).unwrap_or(i64::MAX))
}

impl CiRoutes {
    fn keys(&self) -> Value {
        let text = |bytes: Option<&[u8]>| URL_SAFE_NO_PAD.encode(bytes.unwrap_or_default());
        let point = self.pair.public_key().as_ref();
        let (x, y) = (text(point.get(1..33)), text(point.get(33..)));
        json!({"keys": [
            {"kty": "EC", "crv": "P-256", "use": "sig", "kid": "1", "alg": "ES256", "x": x, "y": y}
        ]})
    }

    fn token(&self, audience: &str, now: i64) -> String {
        let mut claims = json!({
            "iss": self.issuer, "aud": audience, "iat": now, "nbf": now - 5,
            "exp": now + VALID_SECONDS, "sub": "a job",
        });
        let job = self.job.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let (Value::Object(all), Value::Object(job)) = (&mut claims, job) {
            all.extend(job);
        }
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&json!({"alg": "ES256", "kid": "1"})), part(&claims));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes());
        let signature = signature.expect("a signature");
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
    }
}

impl Routes for CiRoutes {
    fn answer(&self, request: &Request) -> Answer {
        let body = match request.path.as_str() {
            "/.well-known/openid-configuration" => Some(json!({
                "issuer": self.issuer, "jwks_uri": format!("{}/keys", self.issuer),
                "id_token_signing_alg_values_supported": ["ES256"],
            })),
            "/keys" => Some(self.keys()),
            "/token" if request.header("authorization") == "Bearer job" => {
                let url = reqwest::Url::parse(&format!("{}/?{}", self.issuer, request.query));
                let url = url.expect("a URL");
                let audience = url.query_pairs().find(|(name, _)| name == "audience");
                let audience = audience.map(|(_, value)| value.into_owned()).unwrap_or_default();
                Some(json!({"value": self.token(&audience, request.seconds)}))
            }
            _ => None,
        };
        Answer {
            status: if body.is_some() { 200 } else { 404 },
            headers: Vec::new(),
            text: body.map(|body| body.to_string()),
        }
    }

    fn refuse(&self, _: &Request, fault: Fault) -> Answer {
        let status = if let Fault::Status(status) = fault { status } else { 503 };
        Answer { status, headers: Vec::new(), text: None }
    }
}
