//! E-mails about accounts: invitations and links for a new password.

use super::change_origin;
use crate::pages::single_sign_on::resettable_accounts;
use crate::state::{DashboardHandles, SendAccountMail};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tributary_domain::access::key::KeyKind;
use tributary_domain::access::letter::{provider_letter, reset_letter};
use tributary_domain::access::password_reset::{MAILED_RESET_LIFETIME, PasswordReset, ResetAnswer};
use tributary_domain::access::person::Email;
use tributary_domain::access::sign_in::{GuessCounter, GuessDecision};
use tributary_domain::access::{Actor, Environment};
use tributary_domain::audit::Client;
use tributary_domain::notice::{MailAddress, Message};
use tributary_domain::vocabulary::id::OrganizationId;
use tributary_domain::vocabulary::subnet::subnet;
use tributary_store::{NewPasswordReset, StoreResult};

/// Requests for a new password that are answered at a time. Each waits for the mail server, at most 20
/// seconds.
const REQUESTS_AT_ONCE_MAX: usize = 64;
/// Wait when that many are being answered: about the time that one takes.
const BUSY_WAIT: Duration = Duration::from_secs(20);

/// Sends e-mails about accounts.
#[derive(Clone)]
pub(crate) struct AccountMail {
    send: SendAccountMail,
    slots: Arc<Semaphore>,
}

impl AccountMail {
    pub(crate) fn new(send: SendAccountMail) -> Self {
        Self {
            send,
            slots: Arc::new(Semaphore::new(REQUESTS_AT_ONCE_MAX)),
        }
    }

    /// Sends a message. The error is for people.
    async fn send(&self, to: &Email, message: Message) -> Result<(), String> {
        match MailAddress::parse(to.as_str()) {
            Ok(address) => (self.send)(address, message).await,
            Err(_) => Err("The address cannot receive e-mail from this server.".to_owned()),
        }
    }

    /// Sends an invitation, unless the organization or the address has had many. The error is for
    /// people.
    pub(crate) async fn invite(
        &self,
        handles: &DashboardHandles,
        organization: OrganizationId,
        to: &Email,
        message: Message,
    ) -> StoreResult<Result<(), String>> {
        let counters = vec![
            GuessCounter::of_mailed_invitations(organization),
            GuessCounter::of_invited_address(to),
        ];
        let now = handles.runtime.now();
        Ok(match handles.store.count_guess(counters, now).await? {
            GuessDecision::Allowed(_) => self.send(to, message).await,
            GuessDecision::Wait(_) => {
                Err("Many invitations were sent by e-mail recently.".to_owned())
            }
        })
    }

    /// Decides whether a request for a new password is answered. Each one counts, whether or not the
    /// address has an account. Returns the wait if not.
    pub(crate) async fn admit_reset(
        &self,
        handles: &DashboardHandles,
        email: &Email,
        address: Option<IpAddr>,
    ) -> StoreResult<Result<OwnedSemaphorePermit, Duration>> {
        let Ok(slot) = self.slots.clone().try_acquire_owned() else {
            tracing::warn!("too many requests for a new password at a time; refusing one");
            return Ok(Err(BUSY_WAIT));
        };
        let network = address.map(|address| GuessCounter::of_reset_network(subnet(address)));
        let mut counters = vec![GuessCounter::of_reset_requests(email)];
        counters.extend(network);
        let now = handles.runtime.now();
        Ok(match handles.store.count_guess(counters, now).await? {
            GuessDecision::Allowed(_) => Ok(slot),
            GuessDecision::Wait(wait) => Err(wait),
        })
    }
}

/// Answers an admitted request for a new password. The response does not wait for it, because its
/// timing would show whether there is an account.
pub(crate) fn answer_reset(
    handles: DashboardHandles,
    mail: AccountMail,
    email: Email,
    client: Option<Client>,
    slot: OwnedSemaphorePermit,
) {
    tokio::spawn(async move {
        let answered = reset_message(&handles, &email, client.as_ref()).await;
        let sent = match answered {
            Ok(Some(message)) => mail.send(&email, message).await,
            Ok(None) => Ok(()),
            Err(error) => {
                tracing::error!(%error, "failed to create a link for a new password");
                Ok(())
            }
        };
        if let Err(error) = sent {
            tracing::warn!(error, "failed to send a link for a new password");
        }
        drop(slot);
    });
}

/// Stores a link if the address gets one. Returns the message.
async fn reset_message(
    handles: &DashboardHandles,
    email: &Email,
    client: Option<&Client>,
) -> StoreResult<Option<Message>> {
    let accounts = resettable_accounts(handles, email).await?;
    match ResetAnswer::of(&accounts) {
        ResetAnswer::Nothing => Ok(None),
        ResetAnswer::UseProvider => Ok(Some(provider_letter(&handles.base_url))),
        ResetAnswer::Link => {
            let now = handles.runtime.now();
            let token = handles.runtime.new_key(KeyKind::Reset, Environment::Live);
            let reset = PasswordReset {
                email: email.clone(),
                expires_at: now.plus(MAILED_RESET_LIFETIME),
            };
            let new = NewPasswordReset {
                reset: reset.clone(),
                digest: token.digest(),
            };
            let origin = change_origin(Actor::Service, client, handles);
            handles.store.create_password_reset(new, origin).await?;
            Ok(Some(reset_letter(&handles.base_url, &token, &reset, now)))
        }
    }
}
