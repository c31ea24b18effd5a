//! Second factors: an authenticator app (TOTP), passkeys, and recovery codes for those who lose them.

pub mod passkey;
pub mod pending;
pub mod recovery;
pub mod totp;

use self::passkey::Passkey;
use crate::access::session::SignInMethod;
use crate::audit::{Changes, FieldChange};
use crate::keyring::seal::SealedSecret;
use crate::refusal::Refusal;
use crate::vocabulary::id::{FactorId, OrganizationId, UserId};
use crate::vocabulary::text::Name;
use crate::vocabulary::time::Timestamp;

/// Factors of a user: more than anybody has devices, and few enough to list on a page.
pub const FACTORS_MAX: usize = 10;

/// Kind of a second factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactorKind {
    /// An authenticator app that shows time-based codes.
    Totp,
    /// A passkey. It replaces the password as well.
    Passkey,
}

crate::keywords! {
    FactorKind {
        Totp => "totp",
        Passkey => "passkey",
    }
}

/// A second factor of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Factor {
    /// Factor id.
    pub id: FactorId,
    /// Its user.
    pub user: UserId,
    /// Name that the user gave it.
    pub name: Name,
    /// Time of the set-up.
    pub created_at: Timestamp,
    /// Last use.
    pub last_used_at: Option<Timestamp>,
    /// What its proofs are checked with.
    pub verifier: FactorVerifier,
}

/// What the proofs of a factor are checked with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FactorVerifier {
    /// The sealed secret of an authenticator app, and the step of the last accepted code.
    Totp {
        /// The secret.
        sealed: SealedSecret,
        /// Codes of this step and earlier ones are refused.
        last_step: Option<i64>,
    },
    /// The public key of a passkey.
    Passkey(Passkey),
}

impl Factor {
    /// Returns the kind.
    pub const fn kind(&self) -> FactorKind {
        match self.verifier {
            FactorVerifier::Totp { .. } => FactorKind::Totp,
            FactorVerifier::Passkey(_) => FactorKind::Passkey,
        }
    }

    /// Returns the passkey, if the factor is one.
    pub const fn passkey(&self) -> Option<&Passkey> {
        match &self.verifier {
            FactorVerifier::Totp { .. } => None,
            FactorVerifier::Passkey(passkey) => Some(passkey),
        }
    }

    /// Returns the encrypted secret, if the factor has one.
    pub const fn sealed(&self) -> Option<&SealedSecret> {
        match &self.verifier {
            FactorVerifier::Totp { sealed, .. } => Some(sealed),
            FactorVerifier::Passkey(_) => None,
        }
    }

    /// Returns the audit log fields of a new factor.
    pub fn creation_changes(&self) -> Vec<FieldChange> {
        let mut changes = Changes::new();
        changes.initial("kind", Some(self.kind().as_str().to_owned()));
        changes.initial("name", Some(self.name.as_str().to_owned()));
        changes.into_vec()
    }

    /// Returns the audit log fields of a removed factor.
    pub fn removal_changes(&self) -> Vec<FieldChange> {
        let mut changes = Changes::new();
        changes.compare("kind", Some(self.kind().as_str().to_owned()), None);
        changes.compare("name", Some(self.name.as_str().to_owned()), None);
        changes.into_vec()
    }
}

/// Scope of the secret of an authenticator app: it can be decrypted for this factor only.
pub fn secret_scope(organization: OrganizationId, user: UserId, factor: FactorId) -> [String; 4] {
    [
        organization.to_string(),
        user.to_string(),
        "factor".to_owned(),
        factor.to_string(),
    ]
}

/// What a user must or need not do about a second factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FactorState {
    /// Whether the organization requires a second factor.
    pub is_required: bool,
    /// Whether the user has one.
    pub is_set_up: bool,
}

impl FactorState {
    /// Returns whether the user must set up a factor before anything else. After a sign-in at the
    /// organization's provider, the provider is responsible for it.
    pub const fn must_set_up(self, method: SignInMethod) -> bool {
        let is_ours = matches!(method, SignInMethod::Password | SignInMethod::Passkey);
        self.is_required && !self.is_set_up && is_ours
    }
}

/// Routes that a user may use who must set up a factor: the set-up, its proof, and the sign-out.
const ALLOWED_WITHOUT_FACTOR: [&str; 4] = [
    "/account/authenticator",
    "/account/passkeys",
    "/account/confirm",
    "/sign-out",
];

/// Returns whether a user who signed in with this method may use a route of the dashboard.
pub fn may_open(state: FactorState, method: SignInMethod, path: &str) -> bool {
    !state.must_set_up(method) || ALLOWED_WITHOUT_FACTOR.contains(&path)
}

/// Decides whether a user may add a factor.
pub fn admit_factor(existing: &[Factor], new: FactorKind) -> Result<(), Refusal> {
    let is_second_app =
        new == FactorKind::Totp && existing.iter().any(|one| one.kind() == FactorKind::Totp);
    if is_second_app {
        return Err(Refusal::AuthenticatorExists);
    }
    if existing.len() >= FACTORS_MAX {
        return Err(Refusal::TooManyFactors);
    }
    Ok(())
}

/// Returns the factor that a user removes. The last one stays while the organization requires one, and
/// the last passkey while the user cannot sign in with anything else. `has_other_sign_in`: the user has a
/// password, or is linked to the organization's provider.
pub fn remove_factor(
    existing: &[Factor],
    factor: FactorId,
    is_required: bool,
    has_other_sign_in: bool,
) -> Result<&Factor, Refusal> {
    let found = existing.iter().find(|one| one.id == factor);
    let found = found.ok_or(Refusal::FactorNotFound)?;
    if is_required && existing.len() == 1 {
        return Err(Refusal::LastFactor);
    }
    let mut passkeys = existing.iter().filter(|one| one.passkey().is_some());
    if !has_other_sign_in && passkeys.all(|one| one.id == factor) {
        return Err(Refusal::LastPasskey);
    }
    Ok(found)
}

/// Decides whether an owner may require a second factor: only with one, so that the owner is not
/// locked out.
pub const fn may_require(is_required: bool, owner_has_factor: bool) -> Result<(), Refusal> {
    if is_required && !owner_has_factor {
        return Err(Refusal::OwnFactorMissing);
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::passkey::samples::SamplePasskeyDevice;
    use super::passkey::{CredentialId, PasskeyKey, RelyingParty};
    use super::*;
    use rstest::rstest;

    pub(crate) fn factor(id: u8) -> Factor {
        Factor {
            id: FactorId::from_bytes([id; 16]),
            user: UserId::from_bytes([1; 16]),
            name: Name::parse("Phone").unwrap(),
            created_at: Timestamp::from_millis(0),
            last_used_at: None,
            verifier: FactorVerifier::Totp {
                sealed: SealedSecret::from_bytes(vec![1]),
                last_step: None,
            },
        }
    }

    #[test]
    fn a_user_has_one_authenticator_app() {
        assert_eq!(admit_factor(&[], FactorKind::Totp), Ok(()));
        let second = admit_factor(&[factor(1)], FactorKind::Totp);
        assert_eq!(second, Err(Refusal::AuthenticatorExists));
    }

    pub(crate) fn passkey(id: u8) -> Factor {
        let here = RelyingParty::of("https://example.com").unwrap();
        let device = SamplePasskeyDevice::new(id, UserId::from_bytes([1; 16]), &here);
        Factor {
            verifier: FactorVerifier::Passkey(Passkey {
                credential: CredentialId::from_bytes(device.credential.clone()).unwrap(),
                key: PasskeyKey::parse(&device.cose_key()).unwrap(),
                counter: 0,
                can_sync: true,
                is_synced: false,
                last_challenge_at: None,
            }),
            ..factor(id)
        }
    }

    #[test]
    fn a_user_has_several_passkeys() {
        let app_and_passkey = [factor(1), passkey(2)];
        assert_eq!(admit_factor(&app_and_passkey, FactorKind::Passkey), Ok(()));
        let many: Vec<Factor> = (1..=10).map(passkey).collect();
        for kind in FactorKind::ALL {
            assert_eq!(admit_factor(&many, *kind), Err(Refusal::TooManyFactors));
        }
    }

    #[rstest]
    #[case::with_a_password(&[1], 1, true, Ok(()))]
    #[case::the_last(&[1], 1, false, Err(Refusal::LastPasskey))]
    #[case::one_of_two(&[1, 2], 1, false, Ok(()))]
    fn the_last_passkey_stays_without_another_way_to_sign_in(
        #[case] passkeys: &[u8],
        #[case] removed: u8,
        #[case] has_other_sign_in: bool,
        #[case] expected: Result<(), Refusal>,
    ) {
        let passkeys = passkeys.iter().map(|id| passkey(*id));
        let existing: Vec<Factor> = passkeys.chain([factor(9)]).collect();
        let id = FactorId::from_bytes([removed; 16]);
        let found = remove_factor(&existing, id, false, has_other_sign_in);
        assert_eq!(found.map(|_| ()), expected);
    }

    #[rstest]
    #[case::one_of_two(2, 1, true, Ok(1))]
    #[case::last(1, 1, false, Ok(1))]
    #[case::last_required(1, 1, true, Err(Refusal::LastFactor))]
    #[case::unknown(1, 9, false, Err(Refusal::FactorNotFound))]
    fn the_last_factor_stays_if_one_is_required(
        #[case] count: u8,
        #[case] removed: u8,
        #[case] is_required: bool,
        #[case] expected: Result<u8, Refusal>,
    ) {
        let existing: Vec<Factor> = (1..=count).map(factor).collect();
        let id = FactorId::from_bytes([removed; 16]);
        let found = remove_factor(&existing, id, is_required, true).map(|one| one.id);
        assert_eq!(found, expected.map(|id| FactorId::from_bytes([id; 16])));
    }

    #[rstest]
    #[case(true, true, true)]
    #[case(true, false, false)]
    #[case(false, false, true)]
    fn only_an_owner_with_a_factor_requires_one(
        #[case] is_required: bool,
        #[case] has_factor: bool,
        #[case] expected: bool,
    ) {
        assert_eq!(may_require(is_required, has_factor).is_ok(), expected);
    }

    #[rstest]
    #[case(true, false, SignInMethod::Password, true)]
    #[case(true, true, SignInMethod::Password, false)]
    #[case(false, false, SignInMethod::Password, false)]
    #[case(true, false, SignInMethod::SingleSignOn, false)]
    #[case(true, false, SignInMethod::Passkey, true)]
    #[case(true, true, SignInMethod::Passkey, false)]
    fn members_without_a_required_factor_set_one_up(
        #[case] is_required: bool,
        #[case] is_set_up: bool,
        #[case] method: SignInMethod,
        #[case] expected: bool,
    ) {
        let state = FactorState {
            is_required,
            is_set_up,
        };
        assert_eq!(state.must_set_up(method), expected);
    }

    #[rstest]
    #[case::set_up(true, false, "/account/authenticator", true)]
    #[case::passkey(true, false, "/account/passkeys", true)]
    #[case::sign_out(true, false, "/sign-out", true)]
    #[case::account(true, false, "/account", false)]
    #[case::report(true, false, "/apps/{app}", false)]
    #[case::set_up_already(true, true, "/apps/{app}", true)]
    #[case::not_required(false, false, "/apps/{app}", true)]
    fn without_a_required_factor_only_the_set_up_opens(
        #[case] is_required: bool,
        #[case] is_set_up: bool,
        #[case] path: &str,
        #[case] expected: bool,
    ) {
        let state = FactorState {
            is_required,
            is_set_up,
        };
        assert_eq!(may_open(state, SignInMethod::Password, path), expected);
    }

    #[test]
    fn the_audit_log_names_kind_and_name() {
        let changes = factor(1).creation_changes();
        let fields: Vec<_> = changes.iter().map(|one| one.after.as_deref()).collect();
        assert_eq!(fields, [Some("totp"), Some("Phone")]);
        let removed = factor(1).removal_changes();
        assert!(removed.iter().all(|one| one.after.is_none()));
    }
}
