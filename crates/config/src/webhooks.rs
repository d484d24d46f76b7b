//! Networks in settings, and rules of `[webhooks]` beyond the types.

use ipnet::IpNet;

use crate::{ConfigError, Server, Webhooks};

impl Webhooks {
    /// The allowed networks.
    pub fn networks(&self) -> Result<Vec<IpNet>, ConfigError> {
        networks("webhooks.allow", &self.allow)
    }
}

impl Server {
    /// The networks of reverse proxies.
    pub fn proxies(&self) -> Result<Vec<IpNet>, ConfigError> {
        networks("server.trusted_proxies", &self.trusted_proxies)
    }
}

fn networks(key: &str, texts: &[String]) -> Result<Vec<IpNet>, ConfigError> {
    let network = |text: &String| {
        let wrong = || {
            let problem = format!("{text:?} must be a network such as 10.1.0.0/16");
            ConfigError::setting(key, problem)
        };
        text.parse::<IpNet>().map_err(|_| wrong())
    };
    texts.iter().map(network).collect()
}

pub(super) fn check(webhooks: &Webhooks) -> Result<(), ConfigError> {
    webhooks.networks()?;
    for (key, value, most) in [
        ("endpoints", webhooks.endpoints, 10_000),
        ("backlog", webhooks.backlog, 1_000_000),
        ("workers", webhooks.workers, 1_000),
        ("at_once", webhooks.at_once, 100),
        ("keep_days", webhooks.keep_days, 3_650),
    ] {
        if value == 0 || value > most {
            let problem = format!("must be from 1 to {most}, but is {value}");
            return Err(ConfigError::setting(format!("webhooks.{key}"), problem));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_cannot_be_right_are_refused() {
        let refusal = |change: fn(&mut Webhooks)| {
            let mut webhooks = Webhooks::default();
            change(&mut webhooks);
            check(&webhooks).err().map(|it| it.to_string()).unwrap_or_default()
        };
        assert_eq!(refusal(|it| it.allow = vec!["10.0.0.0/8".into(), "fd00::/8".into()]), "");
        for wrong in ["10.0.0.1", "10.0.0.0/33", "inside", "", "::1"] {
            let webhooks = Webhooks { allow: vec![wrong.into()], ..Webhooks::default() };
            assert!(
                check(&webhooks).is_err_and(|it| it.to_string().starts_with("webhooks.allow: ")),
                "{wrong}"
            );
        }
        let server = Server { trusted_proxies: vec!["10.0.0.1".into()], ..Server::default() };
        let error = server.proxies().expect_err("refused").to_string();
        assert!(error.starts_with("server.trusted_proxies: "), "{error}");
        assert!(refusal(|it| it.backlog = 0).starts_with("webhooks.backlog: "));
        assert!(refusal(|it| it.at_once = 101).starts_with("webhooks.at_once: "));
    }
}
