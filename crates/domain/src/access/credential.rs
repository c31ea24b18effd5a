//! What a sign-in was checked with. Checking takes a while, and the account may be reset meanwhile. The
//! transaction that starts the session therefore compares it again.

use super::factor::Factor;
use super::person::Role;
use super::session::SignInMethod;
use super::single_sign_on::{Issuer, SingleSignOn, allows_password};
use crate::refusal::Refusal;
use crate::vocabulary::id::FactorId;
use std::fmt;

/// What a sign-in was checked with.
#[derive(Clone, PartialEq, Eq)]
pub enum SignInCredential {
    /// A password.
    Password {
        /// The stored hash that it matched.
        hash: String,
        /// Whether a second factor was checked as well.
        has_second_step: bool,
    },
    /// The organization's provider.
    Provider(Issuer),
    /// A passkey.
    Passkey(FactorId),
}

impl fmt::Debug for SignInCredential {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Password { .. } => formatter.write_str("Password(***)"),
            Self::Provider(issuer) => write!(formatter, "Provider({})", issuer.as_str()),
            Self::Passkey(factor) => write!(formatter, "Passkey({factor})"),
        }
    }
}

/// Facts about an account when its session starts.
#[derive(Clone, Copy)]
pub struct SignInFacts<'a> {
    /// Role of the account.
    pub role: Role,
    /// Stored hash of its password.
    pub password_hash: &'a str,
    /// Its second factors and passkeys.
    pub factors: &'a [Factor],
    /// Settings of its organization's provider.
    pub single_sign_on: Option<&'a SingleSignOn>,
}

impl SignInCredential {
    /// Returns how the user signed in.
    pub const fn method(&self) -> SignInMethod {
        match self {
            Self::Password { .. } => SignInMethod::Password,
            Self::Provider(_) => SignInMethod::SingleSignOn,
            Self::Passkey(_) => SignInMethod::Passkey,
        }
    }

    /// Checks that the credential still signs in.
    pub fn admit(&self, facts: SignInFacts<'_>) -> Result<(), Refusal> {
        let is_current = match self {
            Self::Password { .. } => {
                self.is_current_password(facts.password_hash, facts.factors)
                    && allows_password(facts.role, facts.single_sign_on)
            }
            Self::Provider(issuer) => facts
                .single_sign_on
                .is_some_and(|settings| settings.issuer == *issuer),
            // An organization that leaves sign-ins to its provider allows no passkeys either.
            Self::Passkey(passkey) => {
                let is_passkey = |one: &Factor| one.id == *passkey && one.passkey().is_some();
                facts.factors.iter().any(is_passkey)
                    && allows_password(facts.role, facts.single_sign_on)
            }
        };
        if is_current {
            Ok(())
        } else {
            Err(Refusal::CredentialChanged)
        }
    }

    /// Returns whether the password that was checked is still enough: the first factor may have been
    /// added after the sign-in looked for one.
    fn is_current_password(&self, password_hash: &str, factors: &[Factor]) -> bool {
        let Self::Password {
            hash,
            has_second_step,
        } = self
        else {
            return false;
        };
        hash == password_hash && (*has_second_step || factors.is_empty())
    }

    /// Checks that the password may be replaced: it is the one that was checked.
    pub fn admit_replacement(
        &self,
        password_hash: &str,
        factors: &[Factor],
    ) -> Result<(), Refusal> {
        if self.is_current_password(password_hash, factors) {
            Ok(())
        } else {
            Err(Refusal::CredentialChanged)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::factor::tests::{factor, passkey as passkey_factor};
    use crate::access::single_sign_on::parse_email_domains;
    use crate::keyring::seal::SealedSecret;
    use crate::vocabulary::id::OrganizationId;
    use crate::vocabulary::revision::Revision;
    use crate::vocabulary::time::Timestamp;
    use rstest::rstest;

    const ONE: &str = "https://one.example.com";
    const OTHER: &str = "https://other.example.com";

    fn password(hash: &str) -> SignInCredential {
        SignInCredential::Password {
            hash: hash.to_owned(),
            has_second_step: true,
        }
    }

    fn password_only(hash: &str) -> SignInCredential {
        SignInCredential::Password {
            hash: hash.to_owned(),
            has_second_step: false,
        }
    }

    fn provider(issuer: &str) -> SignInCredential {
        SignInCredential::Provider(Issuer::from_stored(issuer.to_owned()))
    }

    fn passkey(id: u8) -> SignInCredential {
        SignInCredential::Passkey(FactorId::from_bytes([id; 16]))
    }

    fn settings(allows_passwords: bool) -> SingleSignOn {
        let at = Timestamp::from_millis(0);
        SingleSignOn {
            organization: OrganizationId::from_bytes([1; 16]),
            issuer: Issuer::from_stored(ONE.to_owned()),
            client_id: "client".to_owned(),
            client_secret: SealedSecret::from_bytes(vec![1]),
            email_domains: parse_email_domains("example.com").unwrap(),
            default_role: Role::Viewer,
            allows_passwords,
            created_at: at,
            updated_at: at,
            revision: Revision::FIRST,
        }
    }

    #[rstest]
    #[case::right_password(password("new"), Role::Admin, None, true)]
    #[case::replaced_password(password("old"), Role::Owner, None, false)]
    #[case::password_and_provider(password("new"), Role::Admin, Some(true), true)]
    #[case::without_the_second_step(password_only("new"), Role::Owner, None, false)]
    #[case::passwords_were_turned_off(password("new"), Role::Admin, Some(false), false)]
    #[case::owners_keep_theirs(password("new"), Role::Owner, Some(false), true)]
    #[case::provider(provider(ONE), Role::Viewer, Some(false), true)]
    #[case::provider_was_removed(provider(ONE), Role::Viewer, None, false)]
    #[case::another_provider(provider(OTHER), Role::Viewer, Some(true), false)]
    #[case::passkey(passkey(1), Role::Viewer, None, true)]
    #[case::removed_passkey(passkey(2), Role::Viewer, None, false)]
    #[case::authenticator_app(passkey(3), Role::Viewer, None, false)]
    #[case::passkey_and_provider(passkey(1), Role::Viewer, Some(true), true)]
    #[case::passkeys_were_turned_off(passkey(1), Role::Viewer, Some(false), false)]
    #[case::owners_keep_passkeys(passkey(1), Role::Owner, Some(false), true)]
    fn a_credential_signs_in_while_it_is_current(
        #[case] credential: SignInCredential,
        #[case] role: Role,
        #[case] allows_passwords: Option<bool>,
        #[case] expected: bool,
    ) {
        let single_sign_on = allows_passwords.map(settings);
        let admitted = credential.admit(SignInFacts {
            role,
            password_hash: "new",
            factors: &[passkey_factor(1), factor(3)],
            single_sign_on: single_sign_on.as_ref(),
        });
        let wanted = expected.then_some(()).ok_or(Refusal::CredentialChanged);
        assert_eq!(admitted, wanted);
    }

    #[rstest]
    #[case::without_factors(password_only("new"), false, true)]
    #[case::with_both_steps(password("new"), true, true)]
    #[case::first_factor_was_added(password_only("new"), true, false)]
    #[case::last_factor_was_removed(password("new"), false, true)]
    fn the_second_step_is_needed_if_there_is_a_factor_now(
        #[case] credential: SignInCredential,
        #[case] has_factor: bool,
        #[case] expected: bool,
    ) {
        let factors = [factor(3)];
        let factors = if has_factor { &factors[..] } else { &[] };
        let admitted = credential.admit(SignInFacts {
            role: Role::Owner,
            password_hash: "new",
            factors,
            single_sign_on: None,
        });
        assert_eq!(admitted.is_ok(), expected);
        let replaced = credential.admit_replacement("new", factors);
        assert_eq!(replaced.is_ok(), expected);
    }

    #[rstest]
    #[case(password("new"), true)]
    #[case(password("old"), false)]
    #[case(provider(ONE), false)]
    #[case(passkey(1), false)]
    fn only_the_checked_password_is_replaced(
        #[case] credential: SignInCredential,
        #[case] expected: bool,
    ) {
        let replaced = credential.admit_replacement("new", &[]);
        assert_eq!(replaced.is_ok(), expected);
    }

    #[test]
    fn a_hash_is_not_printed() {
        assert_eq!(format!("{:?}", password("hash")), "Password(***)");
        assert_eq!(format!("{:?}", provider(ONE)), format!("Provider({ONE})"));
    }
}
