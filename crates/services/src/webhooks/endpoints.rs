//! Use cases of endpoints.

use std::collections::BTreeSet;

use signalbox_domain::audit::{AuditAction, AuditFields, AuditRecord, of_webhook};
use signalbox_domain::ports::WebhookStore;
use signalbox_domain::time::Span;
use signalbox_domain::token::Caller;
use signalbox_domain::webhook::{
    Content, Endpoint, EndpointId, EndpointSettings, Health, Message, Secret, SettingsError,
};

use super::super::Error;
use super::super::audit::AuditEntryBuilder;
use super::{ATTEMPTS, WebhookError, WebhookService};

/// The default kind of event of a test message.
const TEST_KIND: &str = "pull_request.merged";

/// A created endpoint with the text of its secret, which is not stored.
pub struct CreatedEndpoint {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The text of its newest secret.
    pub secret: String,
}

/// A partial change of an endpoint; a field that is `None` stays unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointChange {
    /// The URL that messages are posted to.
    pub url: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// The names of the events that it receives; empty for all.
    pub kinds: Option<Vec<String>>,
    /// Whether it is on.
    pub enabled: Option<bool>,
    /// When enabling it: whether to also send the events from the time that it was off.
    pub catch_up: bool,
}

impl WebhookService {
    /// Creates an endpoint. It receives events from now on.
    pub async fn create_endpoint(
        &self,
        caller: &Caller,
        mut settings: EndpointSettings,
        enabled: bool,
    ) -> Result<CreatedEndpoint, Error> {
        Self::may(caller)?;
        self.check(&mut settings)?;
        let (id, now) = (EndpointId(self.context.ids.new_id()), self.context.clock.now());
        let new = self.parts.secrets.create(id).map_err(WebhookError::from)?;
        let health = Health::switched_on();
        let endpoint = Endpoint {
            id,
            org: caller.org,
            version: 0,
            settings,
            secrets: vec![Secret { sealed: new.sealed, created_at: now, until: None }],
            health: if enabled { health } else { health.switched_off(now) },
            cursor: self.parts.log.newest(caller.org).await?,
            created_at: now,
            updated_at: now,
        };
        let most = self.limits.endpoints;
        let audit_entry = AuditEntryBuilder::to_webhook(caller, AuditAction::WebhookCreated, id);
        let record = audit_entry.record(
            &*self.context.ids,
            now,
            &AuditFields::new(),
            &of_webhook(&endpoint),
        );
        if !self.store().create(&endpoint, most, Some(&record)).await? {
            return Err(WebhookError::TooMany(most).into());
        }
        Ok(CreatedEndpoint { endpoint, secret: new.text })
    }

    /// The endpoints of the caller's organization.
    pub async fn endpoints(&self, caller: &Caller) -> Result<Vec<Endpoint>, Error> {
        Self::may(caller)?;
        Ok(self.store().endpoints(caller.org).await?)
    }

    /// An endpoint of the caller's organization.
    pub async fn endpoint(&self, caller: &Caller, id: EndpointId) -> Result<Endpoint, Error> {
        Self::may(caller)?;
        self.known(caller.org, id).await
    }

    /// Changes an endpoint and returns it. Enabling it clears its failures.
    pub async fn update_endpoint(
        &self,
        caller: &Caller,
        id: EndpointId,
        change: &EndpointChange,
    ) -> Result<Endpoint, Error> {
        Self::may(caller)?;
        let newest = self.parts.log.newest(caller.org).await?;
        let now = self.context.clock.now();
        let changed = |mut endpoint: Endpoint| {
            let settings = &mut endpoint.settings;
            if let Some(url) = &change.url {
                settings.url.clone_from(url);
            }
            if let Some(description) = &change.description {
                settings.description.clone_from(description);
            }
            if let Some(kinds) = &change.kinds {
                settings.kinds.clone_from(kinds);
            }
            self.check(settings)?;
            match change.enabled {
                Some(true) if !endpoint.health.is_on() => {
                    endpoint.health = Health::switched_on();
                    if !change.catch_up {
                        endpoint.cursor = endpoint.cursor.max(newest);
                    }
                }
                Some(false) => endpoint.health = endpoint.health.switched_off(now),
                Some(true) | None => {}
            }
            endpoint.updated_at = now;
            Ok(endpoint)
        };
        let audit_entry = AuditEntryBuilder::to_webhook(caller, AuditAction::WebhookUpdated, id);
        self.change(&audit_entry, id, changed).await
    }

    /// Deletes an endpoint with its messages.
    pub async fn delete_endpoint(&self, caller: &Caller, id: EndpointId) -> Result<(), Error> {
        Self::may(caller)?;
        let before = of_webhook(&self.known(caller.org, id).await?);
        let audit_entry = AuditEntryBuilder::to_webhook(caller, AuditAction::WebhookDeleted, id);
        let record = audit_entry.record(
            &*self.context.ids,
            self.context.clock.now(),
            &before,
            &AuditFields::new(),
        );
        if self.store().delete(caller.org, id, Some(&record)).await? {
            Ok(())
        } else {
            Err(WebhookError::UnknownEndpoint(id).into())
        }
    }

    /// Adds a new secret to an endpoint. Messages are also signed with the previous one until
    /// `overlap` has passed.
    pub async fn rotate_secret(
        &self,
        caller: &Caller,
        id: EndpointId,
        overlap: Span,
    ) -> Result<CreatedEndpoint, Error> {
        Self::may(caller)?;
        let new = self.parts.secrets.create(id).map_err(WebhookError::from)?;
        let now = self.context.clock.now();
        let rotate = |endpoint: Endpoint| Ok(endpoint.rotated(new.sealed.clone(), overlap, now));
        let audit_entry =
            AuditEntryBuilder::to_webhook(caller, AuditAction::WebhookSecretRotated, id);
        let endpoint = self.change(&audit_entry, id, rotate).await?;
        Ok(CreatedEndpoint { endpoint, secret: new.text })
    }

    /// Sends a sample event to an endpoint that is on; returns the message.
    pub async fn send_test(
        &self,
        caller: &Caller,
        id: EndpointId,
        kind: Option<&str>,
    ) -> Result<Message, Error> {
        Self::may(caller)?;
        let endpoint = self.known(caller.org, id).await?;
        if !endpoint.health.is_on() {
            return Err(WebhookError::Off(id).into());
        }
        let kind = kind.unwrap_or(TEST_KIND);
        let payload = self.parts.catalog.example(kind).ok_or_else(|| {
            let shown: String = kind.chars().take(100).collect();
            let rule = format!("must be the name of an event: unknown event {shown:?}");
            WebhookError::from(SettingsError { field: "event", rule })
        })?;
        let event = self.context.ids.new_id();
        let request = self.context.ids.request_id();
        let content = Content { event, position: 0, kind: kind.to_owned(), payload, request };
        let message = Message::new((caller.org, id), content, self.context.clock.now());
        let sent = [("event", message.kind.clone()), ("messageId", message.id.to_string())];
        let record = self.note((caller, id), AuditAction::WebhookTestSent, sent);
        for _ in 0..ATTEMPTS {
            let (org, cursor) = (caller.org, self.known(caller.org, id).await?.cursor);
            let messages = std::slice::from_ref(&message);
            if self.store().enqueue(org, id, (cursor, cursor), messages, Some(&record)).await? {
                return Ok(message);
            }
        }
        Err(Error::Busy)
    }

    /// Reseals secrets that are sealed with an older key; returns the number of changed endpoints.
    pub async fn reseal(&self) -> Result<u64, Error> {
        let (mut after, mut changed) = (None, 0);
        loop {
            let page = self.store().every(after, 100).await?;
            let Some(last) = page.last() else { return Ok(changed) };
            after = Some(last.id);
            for mut endpoint in page {
                let mut fresh = false;
                for secret in &mut endpoint.secrets {
                    let sealed = self.parts.secrets.reseal(endpoint.id, &secret.sealed);
                    if let Some(sealed) = sealed.map_err(WebhookError::from)? {
                        (secret.sealed, fresh) = (sealed, true);
                    }
                }
                // A concurrent change is harmless: the secret is resealed at the next start.
                if fresh && self.store().save(&endpoint, None).await? {
                    changed += 1;
                }
            }
        }
    }

    /// Checks the settings, and drops repeated names.
    fn check(&self, settings: &mut EndpointSettings) -> Result<(), Error> {
        settings.check(&self.kinds()).map_err(WebhookError::from)?;
        let mut seen = BTreeSet::new();
        settings.kinds.retain(|kind| seen.insert(kind.clone()));
        let rule = self.parts.sender.check_url(&settings.url);
        let refused = |rule| WebhookError::from(SettingsError { field: "url", rule });
        Ok(rule.map_err(refused)?)
    }

    /// The audit record of an action that does not change the endpoint.
    pub(super) fn note<const N: usize>(
        &self,
        (caller, id): (&Caller, EndpointId),
        action: AuditAction,
        what: [(&str, String); N],
    ) -> AuditRecord {
        let what = what.into_iter().map(|(field, value)| (field.to_owned(), value)).collect();
        AuditEntryBuilder::to_webhook(caller, action, id).record(
            &*self.context.ids,
            self.context.clock.now(),
            &AuditFields::new(),
            &what,
        )
    }

    /// Changes an endpoint; repeated after a concurrent change.
    async fn change(
        &self,
        audit_entry: &AuditEntryBuilder,
        id: EndpointId,
        change: impl Fn(Endpoint) -> Result<Endpoint, Error> + Send + Sync,
    ) -> Result<Endpoint, Error> {
        for _ in 0..ATTEMPTS {
            let endpoint = self.known(audit_entry.org, id).await?;
            let before = of_webhook(&endpoint);
            let changed = change(endpoint)?;
            let record = audit_entry.record(
                &*self.context.ids,
                self.context.clock.now(),
                &before,
                &of_webhook(&changed),
            );
            let record = (!record.changes.is_empty()).then_some(record);
            if self.store().save(&changed, record.as_ref()).await? {
                return Ok(Endpoint { version: changed.version + 1, ..changed });
            }
        }
        Err(Error::Busy)
    }

    pub(super) fn store(&self) -> &dyn WebhookStore {
        &*self.context.endpoints
    }
}
