//! What the types of `[webhooks]` do not say.

use ipnet::IpNet;

use super::Webhooks;

impl Webhooks {
    /// The networks that are let through.
    pub(crate) fn networks(&self) -> Result<Vec<IpNet>, String> {
        let network = |text: &String| {
            let wrong =
                || format!("webhooks.allow: {text:?} must be a network such as 10.1.0.0/16");
            text.parse::<IpNet>().map_err(|_| wrong())
        };
        self.allow.iter().map(network).collect()
    }
}

pub(super) fn check(webhooks: &Webhooks) -> Result<(), String> {
    webhooks.networks()?;
    for (key, value, most) in [
        ("endpoints", webhooks.endpoints, 10_000),
        ("backlog", webhooks.backlog, 1_000_000),
        ("workers", webhooks.workers, 1_000),
        ("at_once", webhooks.at_once, 100),
        ("keep_days", webhooks.keep_days, 3_650),
    ] {
        if value == 0 || value > most {
            return Err(format!("webhooks.{key}: must be from 1 to {most}, but is {value}"));
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
            check(&webhooks).err().unwrap_or_default()
        };
        assert_eq!(refusal(|it| it.allow = vec!["10.0.0.0/8".into(), "fd00::/8".into()]), "");
        for wrong in ["10.0.0.1", "10.0.0.0/33", "inside", "", "::1"] {
            let mut webhooks = Webhooks::default();
            webhooks.allow = vec![wrong.into()];
            assert!(
                check(&webhooks).is_err_and(|it| it.starts_with("webhooks.allow: ")),
                "{wrong}"
            );
        }
        assert!(refusal(|it| it.backlog = 0).starts_with("webhooks.backlog: "));
        assert!(refusal(|it| it.at_once = 101).starts_with("webhooks.at_once: "));
    }
}
