//! Single sign-on with OpenID Connect: one provider per organization.
//!
//! An owner of the organization chooses the provider, so the provider can claim any email address.
//! It is therefore believed about its own organization only: every fact that [`decide`] sees
//! belongs to that organization, and a session belongs to one account of one organization.

mod attempt;
mod decision;
mod id_token;
mod provider_fault;
mod settings;

pub use attempt::{ATTEMPT_LIFETIME, SignOnAttempt};
pub use decision::{
    IdentityState, MemberFacts, ProvenIdentity, SINGLE_SIGN_ON_MEMBERS_MAX, SignOnDecision,
    SignOnFacts, SignOnRefusal, allows_password, decide,
};
pub(crate) use id_token::rsa_public_key;
pub use id_token::{
    IdTokenClaims, IdTokenHeader, ProviderKey, SignInRequest, TokenExpectation, TokenFault,
    check_claims, check_signature,
};
pub use provider_fault::{ProviderFault, ProviderSummary};
pub use settings::{
    CLIENT_SECRET_FIELD, CLIENT_TEXT_CHARS_MAX, ChangedSingleSignOn, EMAIL_DOMAINS_MAX, Issuer,
    SINGLE_SIGN_ON_SCOPE, SingleSignOn, SingleSignOnDraft, is_protected, parse_client_text,
    parse_default_role, parse_email_domains, secret_scope,
};

use super::person::{Email, Role};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::OrganizationId;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// Hash part of an account without a password. No password has this hash.
const NO_PASSWORD: [u8; 32] = [0; 32];

/// Returns the stored password hash of an account without a password. It has the form of other
/// hashes, so that checking a password takes as long as for them.
pub fn no_password_hash(salt: [u8; 16]) -> String {
    let (salt, hash) = (
        STANDARD_NO_PAD.encode(salt),
        STANDARD_NO_PAD.encode(NO_PASSWORD),
    );
    format!("$argon2id$v=19$m=19456,t=2,p=1${salt}${hash}")
}

/// Returns whether a stored password hash belongs to a password.
pub fn has_password(hash: &str) -> bool {
    !hash.ends_with(&format!("${}", STANDARD_NO_PAD.encode(NO_PASSWORD)))
}

/// Which form the account page shows for the password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PasswordForm {
    /// The password can be changed.
    Change,
    /// A first password can be chosen. Only owners need one, for when the provider does not work.
    ChooseFirst,
    /// The member signs in at the provider only.
    None,
}

impl PasswordForm {
    /// Returns the form for an account with this password hash.
    pub fn of(role: Role, hash: &str) -> Self {
        match role {
            _ if has_password(hash) => Self::Change,
            Role::Owner => Self::ChooseFirst,
            Role::Admin | Role::Analyst | Role::Viewer => Self::None,
        }
    }
}

/// Identifies a removed member, so that the database does not keep the address.
pub fn removed_member(organization: OrganizationId, email: &Email) -> Digest {
    Digest::of(format!("removed member {organization} {}", email.as_str()).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_without_a_password_has_a_hash_of_the_usual_form() {
        let hash = no_password_hash([7; 16]);
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        assert!(!has_password(&hash));
        assert!(has_password("$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA"));
    }

    #[test]
    fn only_owners_choose_a_first_password() {
        let none = no_password_hash([7; 16]);
        let forms = Role::ALL.iter().map(|role| PasswordForm::of(*role, &none));
        let expected = [
            PasswordForm::ChooseFirst,
            PasswordForm::None,
            PasswordForm::None,
            PasswordForm::None,
        ];
        assert!(forms.eq(expected));
        for role in Role::ALL {
            assert_eq!(PasswordForm::of(*role, "$argon2id$x"), PasswordForm::Change);
        }
    }

    #[test]
    fn a_removed_member_is_known_in_one_organization_only() {
        let email = Email::parse("you@example.com").unwrap();
        let of = |byte| removed_member(OrganizationId::from_bytes([byte; 16]), &email);
        assert_ne!(of(1), of(2));
    }
}
