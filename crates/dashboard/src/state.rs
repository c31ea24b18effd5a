//! Shared state of all pages.

use crate::access::AccountMail;
use crate::password::Hasher;
use crate::sign_on::SignOnProviders;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tributary_domain::access::factor::passkey::RelyingParty;
use tributary_domain::access::known_browser::KnownBrowsers;
use tributary_domain::click::token::ClickTokens;
use tributary_domain::integration::{Integration, TestEventResult};
use tributary_domain::keyring::Keyring;
use tributary_domain::notice::{MailAddress, Message, Notice, NoticePreview};
use tributary_domain::runtime::Runtime;
use tributary_domain::vocabulary::id::OrganizationId;
use tributary_store::report_slots::ReportSlots;
use tributary_store::{Store, StoreResult};
use url::{Host, Url};

/// Result of a connection test, or a message if no test event could be sent.
pub type ConnectionTestFuture =
    Pin<Box<dyn Future<Output = Result<TestEventResult, String>> + Send>>;

/// Sends one test event to an integration's network.
pub type ConnectionTest =
    Arc<dyn Fn(OrganizationId, Integration) -> ConnectionTestFuture + Send + Sync>;

/// The TXT records of a name; `None` if the DNS servers did not answer.
pub type DomainLookupFuture = Pin<Box<dyn Future<Output = Option<Vec<String>>> + Send>>;

/// Looks up the TXT records of a name, which verify link domains.
pub type DomainLookup = Arc<dyn Fn(String) -> DomainLookupFuture + Send + Sync>;

/// A message as it would be sent.
pub type NoticePreviewFuture = Pin<Box<dyn Future<Output = StoreResult<NoticePreview>> + Send>>;

/// Result of a test message: an error for people if it was not accepted.
pub type NoticeTestFuture = Pin<Box<dyn Future<Output = StoreResult<Result<(), String>>> + Send>>;

/// Writes and sends the messages of notices.
#[derive(Clone)]
pub struct NoticeMessages {
    /// Whether e-mail is set up on this server.
    pub sends_mail: bool,
    /// Returns the message that a notice would send.
    pub preview: Arc<dyn Fn(OrganizationId, Notice) -> NoticePreviewFuture + Send + Sync>,
    /// Sends that message now.
    pub send_test: Arc<dyn Fn(OrganizationId, Notice) -> NoticeTestFuture + Send + Sync>,
}

/// Result of sending a message: an error for people if the mail server did not accept it.
pub type AccountMailFuture = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// Sends e-mails about accounts, such as invitations.
pub type SendAccountMail = Arc<dyn Fn(MailAddress, Message) -> AccountMailFuture + Send + Sync>;

/// Dependencies that the server provides.
#[derive(Clone)]
pub struct DashboardState {
    /// The database.
    pub store: Arc<dyn Store>,
    /// Clock and random source.
    pub runtime: Runtime,
    /// Keys derived from the server's `secret_key`.
    pub keyring: Keyring,
    /// Slots for reports, shared with the API.
    pub report_slots: ReportSlots,
    /// Tests an integration's connection.
    pub probe: ConnectionTest,
    /// Looks up TXT records.
    pub txt_lookup: DomainLookup,
    /// Writes and sends the messages of notices.
    pub notices: NoticeMessages,
    /// Sends e-mails about accounts; `None` if e-mail is not set up on this server.
    pub account_mail: Option<SendAccountMail>,
    /// Sends requests to the providers for single sign-on.
    pub sign_on: Arc<dyn SignOnProviders>,
    /// Public base URL without a trailing slash.
    pub base_url: Arc<str>,
    /// Time limit for receiving a form. After that, the server returns 408.
    pub body_timeout: Duration,
}

/// [`DashboardState`] with derived values, passed to all handlers.
#[derive(Clone)]
pub(crate) struct DashboardHandles {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) runtime: Runtime,
    pub(crate) keyring: Keyring,
    pub(crate) click_tokens: ClickTokens,
    pub(crate) report_slots: ReportSlots,
    pub(crate) probe: ConnectionTest,
    pub(crate) txt_lookup: DomainLookup,
    pub(crate) notices: NoticeMessages,
    pub(crate) account_mail: Option<AccountMail>,
    pub(crate) sign_on: Arc<dyn SignOnProviders>,
    pub(crate) base_url: Arc<str>,
    pub(crate) body_timeout: Duration,
    pub(crate) own_origin: OwnOrigin,
    /// `None` if browsers cannot use passkeys on this server.
    pub(crate) relying_party: Option<RelyingParty>,
    pub(crate) hasher: Hasher,
    pub(crate) known_browsers: KnownBrowsers,
}

impl DashboardHandles {
    pub(crate) fn new(state: DashboardState) -> Self {
        Self {
            own_origin: OwnOrigin::of(&state.base_url),
            relying_party: RelyingParty::of(&state.base_url),
            store: state.store,
            runtime: state.runtime,
            click_tokens: ClickTokens::new(&state.keyring),
            known_browsers: KnownBrowsers::new(&state.keyring),
            keyring: state.keyring,
            report_slots: state.report_slots,
            probe: state.probe,
            txt_lookup: state.txt_lookup,
            notices: state.notices,
            account_mail: state.account_mail.map(AccountMail::new),
            sign_on: state.sign_on,
            base_url: state.base_url,
            body_timeout: state.body_timeout,
            hasher: Hasher::for_this_machine(),
        }
    }
}

/// Origin of the dashboard as browsers send it.
#[derive(Debug, Clone)]
pub(crate) struct OwnOrigin {
    text: Option<Arc<str>>,
    is_trustworthy: bool,
    is_tls: bool,
}

impl OwnOrigin {
    /// Derives the origin from the base URL.
    pub(crate) fn of(base_url: &str) -> Self {
        let url = Url::parse(base_url).ok();
        let origin = url.as_ref().map(Url::origin);
        Self {
            text: origin
                .filter(url::Origin::is_tuple)
                .map(|origin| origin.ascii_serialization().into()),
            is_trustworthy: url.as_ref().is_some_and(is_trustworthy),
            is_tls: url.as_ref().is_some_and(|url| url.scheme() == "https"),
        }
    }

    /// Returns whether an `Origin` header matches.
    pub(crate) fn matches(&self, header: &str) -> bool {
        self.text.as_deref() == Some(header)
    }

    /// Returns whether the base URL uses TLS.
    pub(crate) const fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// Returns whether browsers send `Sec-Fetch-Site` to this origin. Over plain HTTP they send it
    /// only to the local host.
    pub(crate) const fn is_trustworthy(&self) -> bool {
        self.is_trustworthy
    }
}

/// "Potentially trustworthy" as defined by the Secure Contexts specification.
fn is_trustworthy(url: &Url) -> bool {
    url.scheme() == "https"
        || match url.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::port("http://127.0.0.1:8080", "http://127.0.0.1:8080", true)]
    #[case::default_port("https://example.com:443", "https://example.com", true)]
    #[case::upper_case("https://Example.com", "https://example.com", true)]
    #[case::another_port("http://127.0.0.1:8080", "http://127.0.0.1:8081", false)]
    #[case::another_scheme("https://example.com", "http://example.com", false)]
    #[case::longer("https://example.com", "https://example.com.evil.test", false)]
    #[case::opaque("https://example.com", "null", false)]
    #[case::no_address("nonsense", "null", false)]
    #[case::opaque_address("data:,", "null", false)]
    fn compares_origins(#[case] base_url: &str, #[case] header: &str, #[case] same: bool) {
        assert_eq!(OwnOrigin::of(base_url).matches(header), same);
    }

    #[rstest]
    #[case("https://example.com", true)]
    #[case("http://127.0.0.1:8080", true)]
    #[case("http://[::1]:8080", true)]
    #[case("http://localhost:8080", true)]
    #[case("http://tributary.localhost", true)]
    #[case("http://192.168.1.5:8080", false)]
    #[case("http://example.com", false)]
    #[case("http://notlocalhost", false)]
    #[case("nonsense", false)]
    fn recognises_trustworthy_origins(#[case] base_url: &str, #[case] expected: bool) {
        assert_eq!(OwnOrigin::of(base_url).is_trustworthy(), expected);
    }
}
