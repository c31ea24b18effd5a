//! Sends a message through a channel.

use super::NoticeService;
use super::channel::{slack_body, webhook_body};
use crate::mail::Mail;
use crate::outbound::OutboundError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use tributary_domain::keyring::secret_scope::{NOTICE_SECRET_SCOPE, SecretScope};
use tributary_domain::notice::{ChannelUrl, Message, Notice, NoticeChannel, Occasion};
use tributary_domain::vocabulary::id::{MessageId, OrganizationId};
use url::Url;

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
    ) -> Result<(), String> {
        let id = id.to_string();
        match &notice.settings.channel {
            NoticeChannel::Email(recipients) => {
                let mail = Mail {
                    to: recipients.clone(),
                    subject: message.subject.clone(),
                    text: message.text(),
                    html: message.html(),
                    id,
                };
                let sent = self.mailer.send(&mail).await;
                sent.map_err(|error| error.to_string())
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
                let signed = self
                    .keyring
                    .sign_alert(notice.app, &id, seconds, body.as_bytes());
                let headers = [
                    ("webhook-id", id),
                    ("webhook-timestamp", seconds.to_string()),
                    ("webhook-signature", format!("v1,{}", BASE64.encode(signed))),
                ];
                self.post(&url, body, &headers).await
            }
        }
    }

    fn open(
        &self,
        organization: OrganizationId,
        notice: &Notice,
        url: &ChannelUrl,
    ) -> Result<String, String> {
        let field = notice.id.to_string();
        let scope = SecretScope::new(organization, notice.app, NOTICE_SECRET_SCOPE, &field);
        let opened = self.keyring.open(&scope.parts(), &url.sealed).ok();
        let opened = opened.and_then(|bytes| String::from_utf8(bytes).ok());
        opened.ok_or_else(|| "The stored URL cannot be decrypted. Enter it again.".to_owned())
    }

    /// Posts JSON to a URL.
    async fn post(
        &self,
        url: &str,
        body: String,
        headers: &[(&str, String)],
    ) -> Result<(), String> {
        let url = Url::parse(url).map_err(|_| "The stored URL is invalid.".to_owned())?;
        let mut request = self.outbound.request(Method::POST, &url);
        request = request.header(CONTENT_TYPE, "application/json").body(body);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        match self.outbound.send(request).await {
            Ok(response) if response.status().is_success() => Ok(()),
            Ok(response) => {
                let status = response.status().as_u16();
                Err(format!("The receiver answered with status {status}."))
            }
            Err(error) => Err(describe(&error).to_owned()),
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
