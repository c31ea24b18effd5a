//! `GET /sign-in/sso/{organization}/callback` — the provider sends the browser back with a code.

use super::begin::SignOnPage;
use super::{find, redirect_url};
use crate::access::{CurrentSession, change_origin, is_guessing, sign_on_cookie};
use crate::failure::Failure;
use crate::pages::sign_in::{CheckedSignIn, begin_checked_session, local_path, with_cookies};
use crate::password::salt_of;
use crate::query::UrlQuery;
use crate::response::see_other;
use crate::sign_on::{CodeRedemption, RedeemedCode};
use crate::state::DashboardHandles;
use axum::Extension;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use std::net::IpAddr;
use tributary_domain::access::Actor;
use tributary_domain::access::credential::SignInCredential;
use tributary_domain::access::person::{Email, User};
use tributary_domain::access::sign_in::{GuessCounter, GuessDecision};
use tributary_domain::access::single_sign_on::{
    IdTokenClaims, ProvenIdentity, ProviderFault, SignInRequest, SignOnAttempt, SignOnRefusal,
    SingleSignOn, no_password_hash, secret_scope,
};
use tributary_domain::audit::Client;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::UserId;
use tributary_domain::vocabulary::subnet::subnet;
use tributary_store::{SignOn, StoreError};

/// Maximum length of a code. Providers use less than 2,000 characters.
const CODE_CHARS_MAX: usize = 4_096;

/// A failure that the audit log contains.
#[derive(Clone, Copy)]
struct AuditedFailure {
    reason: &'static str,
    /// Whether it counts like a wrong password.
    is_guess: bool,
}

impl AuditedFailure {
    const fn guess(reason: &'static str) -> Self {
        Self {
            reason,
            is_guess: true,
        }
    }
}

/// Why a sign-in failed.
enum SignOnFailure {
    /// Shown to the person. Without a reason for the audit log, the request may come from anybody, or
    /// there is nothing to find out.
    Shown {
        status: StatusCode,
        text: String,
        audited: Option<AuditedFailure>,
    },
    /// A failure of this server.
    Other(Failure),
}

impl From<Failure> for SignOnFailure {
    fn from(failure: Failure) -> Self {
        Self::Other(failure)
    }
}

impl From<ProviderFault> for SignOnFailure {
    fn from(fault: ProviderFault) -> Self {
        tracing::warn!(%fault, "single sign-on failed at the provider");
        Self::Shown {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            text: fault.to_string(),
            audited: Some(AuditedFailure {
                reason: fault.code(),
                is_guess: fault.is_guess(),
            }),
        }
    }
}

impl From<StoreError> for SignOnFailure {
    fn from(error: StoreError) -> Self {
        let refusal = match error {
            StoreError::Refused(refusal) => refusal,
            other => return Self::Other(other.into()),
        };
        let reason = match &refusal {
            Refusal::SignOnRefused(why) => why.code(),
            Refusal::CredentialChanged => SignOnRefusal::SettingsChanged.code(),
            _ => "account_not_found",
        };
        Self::Shown {
            status: StatusCode::FORBIDDEN,
            text: refusal.to_string(),
            audited: Some(AuditedFailure::guess(reason)),
        }
    }
}

fn shown(status: StatusCode, text: &str, reason: Option<&'static str>) -> SignOnFailure {
    SignOnFailure::Shown {
        status,
        text: text.to_owned(),
        audited: reason.map(AuditedFailure::guess),
    }
}

/// A request from the provider, through the browser.
struct Callback<'a> {
    handles: &'a DashboardHandles,
    settings: &'a SingleSignOn,
    query: &'a UrlQuery,
    client: Option<&'a Client>,
    headers: &'a HeaderMap,
    session: Option<CurrentSession>,
}

/// Completes a sign-in.
pub(crate) async fn complete(
    State(handles): State<DashboardHandles>,
    Path(organization): Path<String>,
    RawQuery(query): RawQuery,
    client: Option<Extension<Client>>,
    session: Result<CurrentSession, Failure>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let settings = find(&handles, &organization).await?;
    let query = UrlQuery::of(query.as_deref());
    let client = client.map(|Extension(client)| client);
    let callback = Callback {
        handles: &handles,
        settings: &settings,
        query: &query,
        client: client.as_ref(),
        headers: &headers,
        session: session.ok(),
    };
    let mut response = match callback.sign_in().await {
        Ok(response) => response,
        Err(SignOnFailure::Other(failure)) => return Err(failure),
        Err(SignOnFailure::Shown {
            status,
            text,
            audited,
        }) => {
            if let Some(failure) = audited {
                callback.audit(failure).await?;
            }
            let page = SignOnPage::load(&handles, &settings, "", Some(text)).await?;
            page.answer(status, &handles)
        }
    };
    // An attempt is over, whatever its end.
    let cleared = sign_on_cookie::clear_attempt(&handles);
    response.headers_mut().append(header::SET_COOKIE, cleared);
    Ok(response)
}

impl Callback<'_> {
    async fn sign_in(&self) -> Result<Response, SignOnFailure> {
        let attempt = self.attempt()?;
        self.check_guesses().await?;
        self.check_provider_error()?;
        let redeemed = self.redeem(&attempt).await?;
        let request = SignInRequest {
            is_repeated: attempt.is_repeated,
            supports_auth_time: redeemed.supports_auth_time,
        };
        let now = self.handles.runtime.now();
        let proved_at = redeemed.claims.proved_at(request, now);
        let user = self.account(&attempt, redeemed.claims).await?;
        let checked = CheckedSignIn {
            user: user.id,
            credential: SignInCredential::Provider(self.settings.issuer.clone()),
            proved_at,
        };
        let (client, headers) = (self.client, self.headers);
        let begun = begin_checked_session(self.handles, checked, client, headers).await;
        let [session, browser] = begun?;
        let organization = sign_on_cookie::set_organization(self.handles, user.organization);
        let next = see_other(local_path(&attempt.next));
        Ok(with_cookies(next, [session, browser, organization]))
    }

    /// Returns the attempt that this browser began at this organization.
    fn attempt(&self) -> Result<SignOnAttempt, SignOnFailure> {
        let expired = || {
            let text = "This sign-in has expired, or began in another browser. Start again.";
            shown(StatusCode::BAD_REQUEST, text, None)
        };
        let attempt = sign_on_cookie::attempt(self.headers, self.handles).ok_or_else(expired)?;
        let state = self.query.get("state").unwrap_or_default();
        let issuer = self.query.get("iss");
        let is_ours = attempt.organization == self.settings.organization
            && attempt.is_state(state)
            && issuer.is_none_or(|issuer| issuer == self.settings.issuer.as_str());
        let user = self.session.as_ref().map(|session| session.user.id);
        // Only the user who began to connect an account may finish.
        let is_same_user = attempt.connecting.is_none_or(|me| user == Some(me));
        if is_ours && is_same_user {
            Ok(attempt)
        } else {
            Err(expired())
        }
    }

    /// Explains an error that the provider reports. Its own text is not shown.
    fn check_provider_error(&self) -> Result<(), SignOnFailure> {
        let Some(error) = self.query.get("error") else {
            return Ok(());
        };
        let (text, reason) = match error {
            "access_denied" => (
                "The provider did not let you in. Ask the people who manage it for access to this \
                 application.",
                Some("access_denied"),
            ),
            // The provider is down, so nothing was guessed.
            "server_error" | "temporarily_unavailable" => {
                let text =
                    "The provider does not work at the moment. Start again in a few minutes.";
                (text, None)
            }
            _ => (
                "The provider reported an error. Start again, or ask the people who manage it.",
                Some("provider_error"),
            ),
        };
        Err(shown(StatusCode::FORBIDDEN, text, reason))
    }

    /// Refused sign-ins count like wrong passwords. They are counted afterwards, so that an office
    /// that signs in at the same time is not held up: an ID token cannot be guessed.
    async fn check_guesses(&self) -> Result<(), SignOnFailure> {
        let Some(network) = self.network() else {
            return Ok(());
        };
        if is_guessing(self.handles, GuessCounter::of_network(network)).await? {
            let text = "Too many failed attempts from your network. Try again in a few minutes.";
            return Err(shown(StatusCode::TOO_MANY_REQUESTS, text, None));
        }
        Ok(())
    }

    fn network(&self) -> Option<IpAddr> {
        Some(subnet(self.client?.address))
    }

    async fn redeem(&self, attempt: &SignOnAttempt) -> Result<RedeemedCode, SignOnFailure> {
        let code = self.query.get("code").unwrap_or_default();
        if code.is_empty() || code.len() > CODE_CHARS_MAX {
            return Err(ProviderFault::CodeRejected.into());
        }
        let organization = self.settings.organization.to_string();
        let (keyring, sealed) = (&self.handles.keyring, &self.settings.client_secret);
        let secret = keyring.open(&secret_scope(&organization), sealed).ok();
        let secret = secret.and_then(|bytes| String::from_utf8(bytes).ok());
        let redemption = CodeRedemption {
            settings: self.settings.clone(),
            client_secret: secret.ok_or(ProviderFault::SecretUnreadable)?,
            code: code.to_owned(),
            verifier: attempt.verifier(),
            nonce: attempt.nonce(),
            redirect_url: redirect_url(self.handles, self.settings.organization),
            now: self.handles.runtime.now(),
        };
        Ok(self.handles.sign_on.redeem(redemption).await?)
    }

    /// Returns the account of a person whom the provider identified.
    async fn account(
        &self,
        attempt: &SignOnAttempt,
        claims: IdTokenClaims,
    ) -> Result<User, SignOnFailure> {
        let (handles, issuer) = (self.handles, &self.settings.issuer);
        let email = claims.email.as_deref();
        let email = email.and_then(|text| Email::parse(text).ok());
        // The accounts of an address share their salt; see `password::Hasher::verify`.
        let accounts = match &email {
            Some(email) => handles.store.users_by_email(email).await?,
            None => Vec::new(),
        };
        let salt = accounts.iter().find_map(|(_, hash)| salt_of(hash));
        let salt = salt.unwrap_or_else(|| handles.runtime.random_bytes());
        let sign_on = SignOn {
            organization: self.settings.organization,
            issuer: issuer.clone(),
            identity: ProvenIdentity {
                digest: ProvenIdentity::digest_of(issuer, &claims.subject),
                email,
                is_email_verified: claims.is_email_verified,
                hosted_domain: claims.hosted_domain,
            },
            connecting: attempt.connecting,
            attempt: attempt.digest(),
            new_user: UserId::new(handles.runtime.now(), handles.runtime.random_bytes()),
            no_password: no_password_hash(salt),
        };
        let origin = change_origin(Actor::Service, self.client, handles);
        Ok(handles.store.sign_on(sign_on, origin).await?)
    }

    /// Counts a failed sign-in. Returns whether the audit log gets it. Guesses are limited already;
    /// other failures are not, and a stranger could fill the log with them while the provider is down.
    async fn count(&self, failure: AuditedFailure) -> Result<bool, Failure> {
        let Some(network) = self.network() else {
            return Ok(true);
        };
        let (store, now) = (&self.handles.store, self.handles.runtime.now());
        if failure.is_guess {
            let counter = GuessCounter::of_network(network);
            store.add_guess(counter, now).await?;
            return Ok(true);
        }
        let counter = GuessCounter::of_provider_faults(self.settings.organization, network);
        let decision = store.count_guess(vec![counter], now).await?;
        Ok(matches!(decision, GuessDecision::Allowed(_)))
    }

    /// Counts a failed sign-in and writes it to the audit log.
    async fn audit(&self, failure: AuditedFailure) -> Result<(), Failure> {
        let (handles, organization) = (self.handles, self.settings.organization);
        if !self.count(failure).await? {
            return Ok(());
        }
        let (reason, origin) = (
            failure.reason.to_owned(),
            change_origin(Actor::Service, self.client, handles),
        );
        let audited = handles
            .store
            .audit_failed_sign_on(organization, reason, origin);
        Ok(audited.await?)
    }
}
