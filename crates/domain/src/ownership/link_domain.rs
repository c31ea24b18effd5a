//! Link domains. A DNS TXT record below the domain proves that the organization controls it.

use crate::keyring::{Keyring, Purpose};
use crate::vocabulary::digest::hex;
use crate::vocabulary::id::AppId;
use crate::vocabulary::web_url::HostName;

/// Label below the domain that holds the TXT record. The domain itself often is a CNAME to the
/// server, which allows no other record beside it.
const RECORD_LABEL: &str = "_tributary";
/// Start of the record's value. A domain's zone may contain records for other services.
const VALUE_PREFIX: &str = "tributary-verification=";
/// Length of the token in bytes: too long to guess.
const TOKEN_BYTES: usize = 16;

/// An app's own host for links and association files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkDomain {
    /// Host name.
    pub host: HostName,
    /// Whether the organization has proven that it controls the domain. Until then, the domain is a
    /// claim: it excludes no other app and serves no association files.
    pub is_verified: bool,
}

impl LinkDomain {
    /// Creates a claim.
    pub const fn claim(host: HostName) -> Self {
        Self {
            host,
            is_verified: false,
        }
    }
}

/// The TXT record that proves control over a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainChallenge {
    /// Name of the record.
    pub record_name: String,
    /// Value of the record.
    pub record_value: String,
}

impl DomainChallenge {
    /// Returns the record for an app's claim. The token is derived from the instance's secret, so
    /// that nothing has to be stored. It differs per app: another organization's record proves
    /// nothing.
    pub fn new(keyring: &Keyring, app: AppId, host: &HostName) -> Self {
        let tag = keyring.tag(
            Purpose::DomainVerification,
            &[app.as_bytes(), host.as_str().as_bytes()],
        );
        let token = tag.first_chunk::<TOKEN_BYTES>().map_or(&tag[..], |it| it);
        Self {
            record_name: format!("{RECORD_LABEL}.{}", host.as_str()),
            record_value: format!("{VALUE_PREFIX}{}", hex(token)),
        }
    }

    /// Tells whether any of the TXT records at [`Self::record_name`] proves the claim. Spaces and
    /// one pair of quotes around the value are ignored, because some DNS consoles add them.
    pub fn is_met_by(&self, records: &[String]) -> bool {
        records.iter().any(|record| {
            let value = record.trim();
            let inner = value
                .strip_prefix('"')
                .and_then(|value| value.strip_suffix('"'));
            inner.unwrap_or(value) == self.record_value
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const APP: AppId = AppId::from_bytes([1; 16]);

    fn host(text: &str) -> HostName {
        HostName::parse(text).unwrap()
    }

    fn challenge() -> DomainChallenge {
        DomainChallenge::new(&Keyring::new([7; 32]), APP, &host("go.example.com"))
    }

    #[rstest]
    #[case::no_record(&[], false)]
    #[case::the_record(&["{}"], true)]
    #[case::among_others(&["v=spf1 -all", "{}"], true)]
    #[case::spaces_around_it(&[" {} "], true)]
    #[case::quotes_around_it(&["\"{}\""], true)]
    #[case::one_quote(&["\"{}"], false)]
    #[case::longer(&["{}0"], false)]
    #[case::in_a_sentence(&["see {}"], false)]
    #[case::only_the_prefix(&["tributary-verification="], false)]
    #[case::another_token(&["tributary-verification=00000000000000000000000000000000"], false)]
    fn records_that_prove_a_claim(#[case] records: &[&str], #[case] expected: bool) {
        let challenge = challenge();
        let records: Vec<String> = records
            .iter()
            .map(|record| record.replace("{}", &challenge.record_value))
            .collect();
        assert_eq!(challenge.is_met_by(&records), expected);
    }

    #[test]
    fn the_record_is_below_the_domain() {
        let challenge = challenge();
        assert_eq!(challenge.record_name, "_tributary.go.example.com");
        let token = challenge.record_value.strip_prefix(VALUE_PREFIX).unwrap();
        assert_eq!(token.len(), TOKEN_BYTES * 2);
    }

    #[test]
    fn each_app_domain_and_instance_has_its_own_token() {
        let (keyring, name) = (Keyring::new([7; 32]), host("go.example.com"));
        let other_app = AppId::from_bytes([2; 16]);
        for other in [
            DomainChallenge::new(&keyring, other_app, &name),
            DomainChallenge::new(&keyring, APP, &host("go.example.org")),
            DomainChallenge::new(&Keyring::new([8; 32]), APP, &name),
        ] {
            assert!(!other.is_met_by(&[challenge().record_value]));
        }
    }
}
