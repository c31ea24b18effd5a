//! Errors of a provider, explained to the person who set it up.

use super::TokenFault;

/// Why a provider could not be used. No message contains what the provider sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderFault {
    /// The address is private.
    #[error(
        "The provider's address is in a private network. The operator of this server can allow this \
         with single_sign_on.allow_private_addresses."
    )]
    PrivateAddress,
    /// No connection.
    #[error(
        "The server cannot connect to the provider. Check the issuer URL, and that its host exists and has a valid certificate."
    )]
    NotConnected,
    /// No response in time.
    #[error("The provider did not answer in time. Try again.")]
    TimedOut,
    /// Too many requests to providers at the same time, or too soon after a failed one.
    #[error("Too many requests to this provider. Wait ten seconds and try again.")]
    Busy,
    /// A response is too large.
    #[error(
        "The provider sent a larger document than expected, so this is probably not its issuer URL."
    )]
    TooLarge,
    /// A redirect, or another status than 200.
    #[error("The provider answered {document} with status {status}. Check the issuer URL.")]
    Status {
        /// What was requested.
        document: &'static str,
        /// HTTP status.
        status: u16,
    },
    /// A response is not the expected JSON.
    #[error("The provider sent no valid {0}. Check the issuer URL.")]
    Unreadable(&'static str),
    /// The configuration names another issuer.
    #[error(
        "The provider calls itself by another issuer URL than the settings. Copy the issuer exactly as the provider shows it, with or without the slash at its end."
    )]
    IssuerMismatch,
    /// An endpoint is not an https URL.
    #[error("The provider's {0} is not an https URL.")]
    InsecureEndpoint(&'static str),
    /// The provider signs with no supported algorithm.
    #[error(
        "The provider has no key for RS256 or ES256. Choose one of these as the signature algorithm of ID tokens."
    )]
    NoUsableKey,
    /// The provider rejected the client.
    #[error("The provider rejected the client id or the client secret. Enter both again.")]
    ClientRejected,
    /// The provider rejected the code.
    #[error("The provider rejected the sign-in code. Start again.")]
    CodeRejected,
    /// The stored client secret cannot be decrypted.
    #[error("The stored client secret cannot be read. Enter it again.")]
    SecretUnreadable,
    /// The ID token is invalid.
    #[error("{0}")]
    Token(#[from] TokenFault),
}

impl ProviderFault {
    /// Returns whether the fault counts as a failed guess of the network. What a provider that is down
    /// or set up wrongly causes does not: everybody in an office would be locked out with it.
    pub const fn is_guess(&self) -> bool {
        matches!(self, Self::CodeRejected | Self::Token(_))
    }

    /// Returns a code for the audit log.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Token(fault) => fault.code(),
            Self::ClientRejected => "client_rejected",
            Self::CodeRejected => "code_rejected",
            Self::SecretUnreadable => "secret_unreadable",
            _ => "provider_unavailable",
        }
    }
}

/// What a test of the settings found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderSummary {
    /// Host of the page where people sign in.
    pub sign_in_host: String,
    /// Number of usable keys.
    pub keys: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const STATUS: ProviderFault = ProviderFault::Status {
        document: "the sign-in code",
        status: 503,
    };

    #[rstest]
    #[case::code(ProviderFault::CodeRejected, true)]
    #[case::token(ProviderFault::Token(TokenFault::Malformed), true)]
    #[case::outage(ProviderFault::TimedOut, false)]
    #[case::no_connection(ProviderFault::NotConnected, false)]
    #[case::status(STATUS, false)]
    #[case::many_at_once(ProviderFault::Busy, false)]
    #[case::expired_client_secret(ProviderFault::ClientRejected, false)]
    #[case::replaced_instance_key(ProviderFault::SecretUnreadable, false)]
    fn only_what_a_person_sent_is_a_guess(#[case] fault: ProviderFault, #[case] expected: bool) {
        assert_eq!(fault.is_guess(), expected);
    }
}
