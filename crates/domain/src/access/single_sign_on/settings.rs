//! An organization's settings for single sign-on.

use crate::access::person::Role;
use crate::audit::{Changes, FieldChange};
use crate::keyring::seal::SealedSecret;
use crate::keyring::secret_scope::check_secret;
use crate::refusal::Refusal;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::id::OrganizationId;
use crate::vocabulary::revision::{Precondition, Revision};
use crate::vocabulary::text::check_length;
use crate::vocabulary::time::Timestamp;
use crate::vocabulary::web_url::HostName;
use url::{Host, Url};

/// Maximum length of an issuer URL, as for other URLs that requests are sent to.
const ISSUER_CHARS_MAX: usize = 500;
/// Maximum length of a client id and of a client secret. Providers use less than 300 characters.
pub const CLIENT_TEXT_CHARS_MAX: usize = 500;
/// Maximum number of email domains: more than the companies of a group have.
pub const EMAIL_DOMAINS_MAX: usize = 50;
/// Owner name of the client secret.
pub const SINGLE_SIGN_ON_SCOPE: &str = "single-sign-on";
/// Field name of the client secret.
pub const CLIENT_SECRET_FIELD: &str = "clientSecret";
/// Google's issuer, which all of Google's accounts share.
const GOOGLE: &str = "https://accounts.google.com";

/// Returns the scope that an organization's client secret is encrypted for.
pub fn secret_scope(organization: &str) -> [&str; 3] {
    [organization, SINGLE_SIGN_ON_SCOPE, CLIENT_SECRET_FIELD]
}

/// A provider's issuer URL. It is compared character by character, as OpenID Connect requires.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Issuer(String);

impl Issuer {
    /// Parses an issuer. Plain http is only for providers on this machine, in tests.
    pub fn parse(text: &str, allows_http: bool) -> Result<Self, Problem> {
        let text = text.trim();
        check_length(text, 1, ISSUER_CHARS_MAX)?;
        let invalid = || {
            let message =
                "Must be an https URL without query, for example https://login.example.com.";
            Problem::new(FaultCode::InvalidFormat, message)
        };
        let url = Url::parse(text).map_err(|_| invalid())?;
        let is_plain = url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
            && text.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_protected(&url, allows_http) || !is_plain {
            return Err(invalid());
        }
        Ok(Self(text.to_owned()))
    }

    /// Reads the stored form.
    pub const fn from_stored(text: String) -> Self {
        Self(text)
    }

    /// Returns the issuer.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the URL of the provider's configuration.
    pub fn configuration_url(&self) -> String {
        let base = self.0.trim_end_matches('/');
        format!("{base}/.well-known/openid-configuration")
    }

    /// Returns whether the issuer vouches for an email address only together with its `hd` claim.
    /// Anybody can have a Google account for an address at another provider.
    pub fn needs_hosted_domain(&self) -> bool {
        self.0 == GOOGLE
    }
}

/// Returns whether no network on the way can read or change what is sent to a provider's URL: https, or,
/// if it is allowed, plain http to this machine.
pub fn is_protected(url: &Url, allows_http: bool) -> bool {
    let is_loopback = match url.host() {
        None => return false,
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
    };
    match url.scheme() {
        "https" => true,
        "http" => allows_http && is_loopback,
        _ => false,
    }
}

/// An organization's provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SingleSignOn {
    /// Organization.
    pub organization: OrganizationId,
    /// Issuer URL.
    pub issuer: Issuer,
    /// Client id at the provider.
    pub client_id: String,
    /// Client secret at the provider.
    pub client_secret: SealedSecret,
    /// Domains of the email addresses that may be linked or become members.
    pub email_domains: Vec<HostName>,
    /// Role of new members. Never owner.
    pub default_role: Role,
    /// Whether members who are not owners may also sign in with a password.
    pub allows_passwords: bool,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// Revision.
    pub revision: Revision,
}

/// New settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SingleSignOnDraft {
    /// Issuer URL.
    pub issuer: Issuer,
    /// Client id at the provider.
    pub client_id: String,
    /// New client secret; `None` keeps the stored one.
    pub client_secret: Option<SealedSecret>,
    /// Domains of email addresses.
    pub email_domains: Vec<HostName>,
    /// Role of new members.
    pub default_role: Role,
    /// Whether members who are not owners may also sign in with a password.
    pub allows_passwords: bool,
}

/// Stored settings after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedSingleSignOn {
    /// The new settings.
    pub after: SingleSignOn,
    /// Audit log fields.
    pub changes: Vec<FieldChange>,
    /// Whether the organization trusts another provider now, so that accounts are linked again.
    pub is_new_issuer: bool,
}

impl SingleSignOn {
    /// Returns the `ETag` of this revision.
    pub fn tag(&self) -> String {
        self.revision.number().to_string()
    }

    /// Rejects a change of an outdated version.
    pub fn admit(&self, precondition: &Precondition) -> Result<(), Refusal> {
        if precondition.admits(&self.tag()) {
            Ok(())
        } else {
            Err(Refusal::VersionConflict)
        }
    }

    /// Replaces the settings, or creates them. The client secret must be entered again for a new
    /// issuer: it would otherwise be sent to a URL that it was not made for.
    pub fn replaced(
        stored: Option<Self>,
        organization: OrganizationId,
        draft: SingleSignOnDraft,
        precondition: &Precondition,
        at: Timestamp,
    ) -> Result<ChangedSingleSignOn, Refusal> {
        if let Some(stored) = &stored {
            stored.admit(precondition)?;
        }
        let is_new_issuer = stored.as_ref().is_none_or(|one| one.issuer != draft.issuer);
        let is_new_secret = draft.client_secret.is_some();
        let kept = stored.as_ref().filter(|_| !is_new_issuer);
        let kept = kept.map(|one| one.client_secret.clone());
        let Some(client_secret) = draft.client_secret.or(kept) else {
            let mut faults = Faults::new();
            let message = "Enter the client secret that the provider created for this issuer.";
            faults.add(
                CLIENT_SECRET_FIELD,
                Problem::new(FaultCode::Required, message),
            );
            return Err(Refusal::Invalid(faults));
        };
        let after = Self {
            organization,
            issuer: draft.issuer,
            client_id: draft.client_id,
            client_secret,
            email_domains: draft.email_domains,
            default_role: draft.default_role,
            allows_passwords: draft.allows_passwords,
            created_at: stored.as_ref().map_or(at, |one| one.created_at),
            updated_at: at,
            revision: stored
                .as_ref()
                .map_or(Revision::FIRST, |one| one.revision.next()),
        };
        let mut changes = Changes::new();
        let before = stored.as_ref().map(Self::audited).unwrap_or_default();
        for (index, (field, value)) in after.audited().into_iter().enumerate() {
            let old = before.get(index).map(|(_, old)| old.clone());
            changes.compare(field, old, Some(value));
        }
        if is_new_secret {
            let old = stored.map(|_| "set".to_owned());
            changes.compare(CLIENT_SECRET_FIELD, old, Some("replaced".to_owned()));
        }
        Ok(ChangedSingleSignOn {
            after,
            changes: changes.into_vec(),
            is_new_issuer,
        })
    }

    fn audited(&self) -> Vec<(&'static str, String)> {
        let domains: Vec<&str> = self.email_domains.iter().map(HostName::as_str).collect();
        vec![
            ("issuer", self.issuer.as_str().to_owned()),
            ("clientId", self.client_id.clone()),
            ("emailDomains", domains.join(" ")),
            ("defaultRole", self.default_role.as_str().to_owned()),
            ("allowsPasswords", self.allows_passwords.to_string()),
        ]
    }
}

/// Checks a client id or client secret.
pub fn parse_client_text(text: &str) -> Result<String, Problem> {
    let text = text.trim();
    check_secret(text, &(1..=CLIENT_TEXT_CHARS_MAX))?;
    Ok(text.to_owned())
}

/// Parses domains, separated by spaces, commas or line breaks.
pub fn parse_email_domains(text: &str) -> Result<Vec<HostName>, Problem> {
    let words = text.split([' ', ',', '\n', '\r', '\t']);
    let mut domains = Vec::new();
    for word in words.filter(|word| !word.is_empty()) {
        let domain = HostName::parse(word)?;
        if !domains.contains(&domain) {
            domains.push(domain);
        }
    }
    if domains.is_empty() {
        let message = "Enter at least one domain, for example example.com.";
        return Err(Problem::new(FaultCode::Required, message));
    }
    if domains.len() > EMAIL_DOMAINS_MAX {
        let message = format!("Must be at most {EMAIL_DOMAINS_MAX} domains.");
        return Err(Problem::new(FaultCode::NotAllowed, message));
    }
    Ok(domains)
}

/// Parses the role of new members. The provider cannot make owners.
pub fn parse_default_role(text: &str) -> Result<Role, Problem> {
    Role::parse(text)
        .filter(|role| *role != Role::Owner)
        .ok_or_else(|| {
            let message = "Must be one of admin, analyst, viewer.";
            Problem::new(FaultCode::UnknownValue, message)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn draft(issuer: &str, secret: Option<u8>) -> SingleSignOnDraft {
        SingleSignOnDraft {
            issuer: Issuer::parse(issuer, false).unwrap(),
            client_id: "client".to_owned(),
            client_secret: secret.map(|byte| SealedSecret::from_bytes(vec![byte])),
            email_domains: parse_email_domains("example.com").unwrap(),
            default_role: Role::Viewer,
            allows_passwords: true,
        }
    }

    fn replaced(
        stored: Option<SingleSignOn>,
        draft: SingleSignOnDraft,
    ) -> Result<ChangedSingleSignOn, Refusal> {
        let organization = OrganizationId::from_bytes([1; 16]);
        let at = Timestamp::from_millis(5);
        SingleSignOn::replaced(stored, organization, draft, &Precondition::None, at)
    }

    const ONE: &str = "https://one.example.com";
    const OTHER: &str = "https://other.example.com";

    #[rstest]
    #[case::new_without_secret(false, ONE, None, None)]
    #[case::new(false, ONE, Some(1), Some((1, true)))]
    #[case::same_issuer_keeps_the_secret(true, ONE, None, Some((9, false)))]
    #[case::same_issuer_new_secret(true, ONE, Some(1), Some((1, false)))]
    #[case::other_issuer_needs_a_secret(true, OTHER, None, None)]
    #[case::other_issuer(true, OTHER, Some(1), Some((1, true)))]
    fn a_secret_is_never_sent_to_another_issuer(
        #[case] is_stored: bool,
        #[case] issuer: &str,
        #[case] secret: Option<u8>,
        #[case] expected: Option<(u8, bool)>,
    ) {
        let stored = is_stored.then(|| replaced(None, draft(ONE, Some(9))).unwrap().after);
        let changed = replaced(stored, draft(issuer, secret)).ok();
        let found = changed.map(|one| (one.after.client_secret.as_bytes()[0], one.is_new_issuer));
        assert_eq!(found, expected);
    }

    #[test]
    fn an_outdated_version_is_not_changed() {
        let stored = replaced(None, draft(ONE, Some(9))).unwrap().after;
        let old = Precondition::AnyOf(vec!["0".to_owned()]);
        assert_eq!(stored.admit(&old), Err(Refusal::VersionConflict));
        let current = Precondition::AnyOf(vec![stored.tag()]);
        assert_eq!(stored.admit(&current), Ok(()));
    }

    #[test]
    fn the_audit_log_does_not_show_the_secret() {
        let changed = replaced(None, draft(ONE, Some(9))).unwrap();
        let secret = changed.changes.last().unwrap();
        assert_eq!(secret.field, CLIENT_SECRET_FIELD);
        assert_eq!(secret.after.as_deref(), Some("replaced"));
    }

    #[rstest]
    #[case("https://login.example.com", true)]
    #[case("https://login.example.com/realms/main/", true)]
    #[case(" https://login.example.com ", true)]
    #[case("http://login.example.com", false)]
    #[case("https://user@login.example.com", false)]
    #[case("https://login.example.com?a=b", false)]
    #[case("https://login.example.com#a", false)]
    #[case("https://login.exämple.com", false)]
    #[case("ftp://login.example.com", false)]
    #[case("login.example.com", false)]
    #[case("", false)]
    fn parses_issuers(#[case] text: &str, #[case] is_valid: bool) {
        assert_eq!(Issuer::parse(text, false).is_ok(), is_valid);
        assert_eq!(Issuer::parse(text, true).is_ok(), is_valid);
    }

    #[rstest]
    #[case::loopback("http://127.0.0.1:8090", true)]
    #[case::loopback_of_version_6("http://[::1]:8090", true)]
    #[case::by_name("http://localhost", true)]
    #[case::private_network("http://10.0.0.1", false)]
    #[case::similar_name("http://localhost.example.com", false)]
    #[case::public("http://login.example.com", false)]
    fn plain_http_stays_on_this_machine(#[case] text: &str, #[case] is_allowed: bool) {
        assert!(Issuer::parse(text, false).is_err());
        assert_eq!(Issuer::parse(text, true).is_ok(), is_allowed);
    }

    #[rstest]
    #[case("https://a.test", "https://a.test/.well-known/openid-configuration")]
    #[case(
        "https://a.test/x/",
        "https://a.test/x/.well-known/openid-configuration"
    )]
    fn finds_the_configuration(#[case] issuer: &str, #[case] expected: &str) {
        assert_eq!(
            Issuer::parse(issuer, false).unwrap().configuration_url(),
            expected
        );
    }

    #[rstest]
    #[case("example.com", Some(1))]
    #[case("Example.com, example.com\nexample.org", Some(2))]
    #[case("", None)]
    #[case("@example.com", None)]
    #[case("https://example.com", None)]
    fn parses_domains(#[case] text: &str, #[case] expected: Option<usize>) {
        assert_eq!(
            parse_email_domains(text).ok().map(|one| one.len()),
            expected
        );
        assert!(parse_email_domains(&many(EMAIL_DOMAINS_MAX + 1)).is_err());
        assert!(parse_email_domains(&many(EMAIL_DOMAINS_MAX)).is_ok());
    }

    fn many(count: usize) -> String {
        let names = (0..count).map(|index| format!("d{index}.example.com"));
        names.collect::<Vec<_>>().join(" ")
    }

    #[rstest]
    #[case("owner", false)]
    #[case("admin", true)]
    #[case("analyst", true)]
    #[case("viewer", true)]
    #[case("", false)]
    fn nobody_becomes_an_owner(#[case] text: &str, #[case] is_valid: bool) {
        assert_eq!(parse_default_role(text).is_ok(), is_valid);
    }
}
