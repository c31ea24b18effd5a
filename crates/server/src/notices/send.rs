//! Sends a message through a channel.

use super::NoticeService;
use super::channel::{slack_body, webhook_body};
use crate::mail::MailError;
use crate::outbound::OutboundError;
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use tributary_domain::keyring::alert::AlertSecrets;
use tributary_domain::keyring::secret_scope::{NOTICE_SECRET_SCOPE, SecretScope};
use tributary_domain::notice::{ChannelUrl, Message, Notice, NoticeChannel, Occasion};
use tributary_domain::vocabulary::id::{AppId, MessageId, OrganizationId};
use tributary_domain::vocabulary::time::Timestamp;
use url::Url;

/// Why a message was not accepted.
pub(super) struct SendFailure {
    /// For people.
    pub(super) reason: String,
    /// Whether other messages to the same destination would fail as well.
    pub(super) is_down: bool,
}

impl SendFailure {
    fn of_message(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            is_down: false,
        }
    }
}

impl From<MailError> for SendFailure {
    fn from(error: MailError) -> Self {
        let is_down = match error {
            MailError::Unreachable | MailError::TimedOut | MailError::Tls | MailError::Login(_) => {
                true
            }
            MailError::NotConfigured
            | MailError::Deferred(_)
            | MailError::Refused(_)
            | MailError::Invalid => false,
        };
        Self {
            reason: error.to_string(),
            is_down,
        }
    }
}

impl From<&OutboundError> for SendFailure {
    fn from(error: &OutboundError) -> Self {
        let is_down = matches!(
            error,
            OutboundError::TimedOut | OutboundError::NotConnected(_)
        );
        Self {
            reason: describe(error).to_owned(),
            is_down,
        }
    }
}

/// Returns the server that a channel's messages go to. All e-mail goes to one.
pub(super) fn destination(channel: &NoticeChannel) -> &str {
    channel.url().map_or("mail", |url| &url.origin)
}

/// Says why there is no answer, for the people of the app. Addresses are left out, because they would
/// tell about the operator's network.
const fn describe(error: &OutboundError) -> &'static str {
    match error {
        OutboundError::Private(_) => "The host has a private address, which is not allowed.",
        OutboundError::TimedOut => "The receiver did not answer in time.",
        OutboundError::NotConnected(_) => "The receiver cannot be reached.",
        OutboundError::TooLarge(_) | OutboundError::Failed(_) => "The request failed.",
    }
}

impl NoticeService {
    /// Sends a message through the notice's channel. The error is for people.
    pub(super) async fn send(
        &self,
        organization: OrganizationId,
        notice: &Notice,
        message: &Message,
        id: MessageId,
        occasion: &Occasion,
    ) -> Result<(), SendFailure> {
        let id = id.to_string();
        match &notice.settings.channel {
            NoticeChannel::Email(recipients) => {
                let sent = self.mailer.send_message(recipients.clone(), message, id);
                Ok(sent.await?)
            }
            NoticeChannel::Slack(url) => {
                let url = self.open(organization, notice, url)?;
                self.post(&url, slack_body(message), &[]).await
            }
            NoticeChannel::Webhook(url) => {
                let url = self.open(organization, notice, url)?;
                let now = self.runtime.now();
                let body = webhook_body(&id, notice.app, occasion, message, now);
                let seconds = now.as_millis().div_euclid(1_000);
                let secrets = self.alert_secrets(notice.app, now).await?;
                let signatures = secrets.signatures(&id, seconds, body.as_bytes());
                let headers = [
                    ("webhook-id", id),
                    ("webhook-timestamp", seconds.to_string()),
                    ("webhook-signature", signatures),
                ];
                self.post(&url, body, &headers).await
            }
        }
    }

    /// Returns the secrets that an app's messages to webhooks are signed with.
    async fn alert_secrets(&self, app: AppId, now: Timestamp) -> Result<AlertSecrets, SendFailure> {
        let unreadable = || SendFailure::of_message("The signing secret cannot be read now.");
        let found = self.store.alert_secrets(app).await;
        let (organization, stored) = found.map_err(|error| {
            tracing::debug!(%error, "failed to read the secrets of alerts");
            unreadable()
        })?;
        let of = (organization, app);
        let secrets = self.keyring.alert_secrets(of, stored.as_ref(), now);
        secrets.map_err(|_| unreadable())
    }

    fn open(
        &self,
        organization: OrganizationId,
        notice: &Notice,
        url: &ChannelUrl,
    ) -> Result<String, SendFailure> {
        let field = notice.id.to_string();
        let scope = SecretScope::new(organization, notice.app, NOTICE_SECRET_SCOPE, &field);
        let opened = self.keyring.open(&scope.parts(), &url.sealed).ok();
        let opened = opened.and_then(|bytes| String::from_utf8(bytes).ok());
        let message = "The stored URL cannot be decrypted. Enter it again.";
        opened.ok_or_else(|| SendFailure::of_message(message))
    }

    /// Posts JSON to a URL.
    async fn post(
        &self,
        url: &str,
        body: String,
        headers: &[(&str, String)],
    ) -> Result<(), SendFailure> {
        let invalid = |_| SendFailure::of_message("The stored URL is invalid.");
        let url = Url::parse(url).map_err(invalid)?;
        let mut request = self.outbound.request(Method::POST, &url);
        request = request.header(CONTENT_TYPE, "application/json").body(body);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        match self.outbound.send(request).await {
            Ok(response) if response.status().is_success() => Ok(()),
            Ok(response) => {
                let status = response.status().as_u16();
                let reason = format!("The receiver answered with status {status}.");
                Err(SendFailure::of_message(reason))
            }
            Err(error) => Err(SendFailure::from(&error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_stay_secret() {
        let private = OutboundError::Private("10.1.2.3".parse().unwrap());
        let refused = OutboundError::NotConnected("tcp connect error: 10.1.2.3:443".to_owned());
        for error in [private, refused] {
            assert!(!describe(&error).contains("10.1.2.3"), "{error}");
        }
    }
}
