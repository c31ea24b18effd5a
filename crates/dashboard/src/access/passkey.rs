//! Passkeys in forms: the challenge in its cookie, what the script fills in, and the check of a use.

use super::cookie::{format_cookie, value};
use super::second_step::CodeCheck;
use crate::failure::Failure;
use crate::state::DashboardHandles;
use axum::http::{HeaderMap, HeaderValue};
use tributary_domain::access::credential::SignInCredential;
use tributary_domain::access::factor::Factor;
use tributary_domain::access::factor::passkey::{
    Assertion, CHALLENGE_LIFETIME, CLIENT_DATA_BYTES_MAX, ClientData, CredentialId, Passkey,
    PasskeyChallenge, PasskeyExpectation, PasskeyFault, Registration, RelyingParty,
    SUPPORTED_ALGORITHMS, check_assertion, check_registration, decode_field, encode_field,
};
use tributary_domain::access::person::User;
use tributary_domain::access::sign_in::{CountedGuess, GuessCounter, GuessDecision};
use tributary_domain::vocabulary::id::UserId;
use tributary_fields::Form;

const CHALLENGE: &str = "tributary-passkey";
/// Field with the id of the passkey.
const CREDENTIAL: &str = "passkey.credential";
/// Field with the client data.
const CLIENT_DATA: &str = "passkey.clientData";
/// Field with the attestation object of a new passkey.
const ATTESTATION: &str = "passkey.attestation";
/// Field with the authenticator data of a use.
const AUTHENTICATOR: &str = "passkey.authenticator";
/// Field with the signature of a use.
const SIGNATURE: &str = "passkey.signature";
/// Field with the user whom the device names.
const USER: &str = "passkey.user";

/// What a page tells the script.
pub(crate) struct PasskeyOffer {
    /// The host name.
    pub(crate) host: String,
    /// Passkeys to choose from, or not to register again. Without any, the device offers its own.
    pub(crate) credentials: String,
    /// Algorithms of new passkeys.
    pub(crate) algorithms: String,
}

impl PasskeyOffer {
    /// Offers passkeys on this server. Returns `None` if browsers cannot use them there.
    pub(crate) fn of(handles: &DashboardHandles, factors: &[Factor]) -> Option<Self> {
        let relying_party = handles.relying_party.as_ref()?;
        let passkeys = factors.iter().filter_map(Factor::passkey);
        let ids: Vec<String> = passkeys.map(|one| one.credential.text()).collect();
        let algorithms: Vec<String> = SUPPORTED_ALGORITHMS.map(|one| one.to_string()).into();
        Some(Self {
            host: relying_party.id().to_owned(),
            credentials: ids.join(" "),
            algorithms: algorithms.join(" "),
        })
    }

    /// Offers the passkeys of a user. Returns `None` if there is none.
    pub(crate) fn of_user(handles: &DashboardHandles, factors: &[Factor]) -> Option<Self> {
        let has_passkey = factors.iter().any(|one| one.passkey().is_some());
        has_passkey.then(|| Self::of(handles, factors)).flatten()
    }
}

/// Returns the `Set-Cookie` header of a challenge.
pub(crate) fn set_challenge(
    handles: &DashboardHandles,
    challenge: &PasskeyChallenge,
) -> HeaderValue {
    let sealed = challenge.seal(&handles.keyring, handles.runtime.random_bytes());
    format_cookie(handles, CHALLENGE, &sealed, CHALLENGE_LIFETIME.as_secs())
}

/// The challenge of this browser, and this server.
struct Expected<'a>(PasskeyChallenge, &'a RelyingParty);

impl<'a> Expected<'a> {
    fn of(headers: &HeaderMap, handles: &'a DashboardHandles) -> Option<Self> {
        let text = value(headers, handles, CHALLENGE)?;
        let challenge = PasskeyChallenge::open(&handles.keyring, text, handles.runtime.now())?;
        Some(Self(challenge, handles.relying_party.as_ref()?))
    }

    const fn expectation(&self) -> PasskeyExpectation<'_> {
        PasskeyExpectation {
            challenge: &self.0,
            relying_party: self.1,
        }
    }
}

/// Returns whether a form contains a new passkey.
pub(crate) fn has_new_passkey(form: &Form) -> bool {
    !form.field(ATTESTATION).is_empty()
}

/// Returns whether a form contains the use of a passkey.
pub(crate) fn has_passkey(form: &Form) -> bool {
    !form.field(SIGNATURE).is_empty()
}

fn client_data(form: &Form) -> Option<ClientData> {
    let json = decode_field(&form.field(CLIENT_DATA))?;
    if json.len() > CLIENT_DATA_BYTES_MAX {
        return None;
    }
    let parsed: serde_json::Value = serde_json::from_slice(&json).ok()?;
    let text = |name: &str| Some(parsed.get(name)?.as_str()?.to_owned());
    let is_cross_origin = parsed
        .get("crossOrigin")
        .is_some_and(|value| value.as_bool() != Some(false));
    Some(ClientData {
        ceremony: text("type")?,
        challenge: text("challenge")?,
        origin: text("origin")?,
        is_cross_origin: is_cross_origin || parsed.get("topOrigin").is_some(),
        json,
    })
}

fn registration(form: &Form) -> Option<Registration> {
    Some(Registration {
        client_data: client_data(form)?,
        attestation_object: decode_field(&form.field(ATTESTATION))?,
    })
}

fn assertion(form: &Form) -> Option<Assertion> {
    let user = form.field(USER);
    let user_handle = if user.is_empty() {
        None
    } else {
        Some(decode_field(&user)?)
    };
    Some(Assertion {
        credential: CredentialId::from_bytes(decode_field(&form.field(CREDENTIAL))?)?,
        client_data: client_data(form)?,
        authenticator_data: decode_field(&form.field(AUTHENTICATOR))?,
        signature: decode_field(&form.field(SIGNATURE))?,
        user_handle,
    })
}

/// Checks the new passkey in a form. Returns it with the id of the account that may be set up with it.
pub(crate) fn check_new_passkey(
    handles: &DashboardHandles,
    form: &Form,
    headers: &HeaderMap,
) -> Result<(Passkey, UserId), PasskeyFault> {
    let registration = registration(form).ok_or(PasskeyFault::Malformed)?;
    let expected = Expected::of(headers, handles).ok_or(PasskeyFault::Challenge)?;
    let passkey = check_registration(&registration, &expected.expectation())?;
    Ok((passkey, expected.0.new_user()))
}

/// A use of a passkey that is not checked yet.
pub(crate) struct PresentedPasskey {
    assertion: Assertion,
    owner: User,
    factor: Factor,
}

impl PresentedPasskey {
    /// Finds the passkey that a form names.
    pub(crate) async fn find(
        handles: &DashboardHandles,
        form: &Form,
    ) -> Result<Option<Self>, Failure> {
        let Some(assertion) = assertion(form) else {
            return Ok(None);
        };
        let found = handles.store.passkey(&assertion.credential).await?;
        Ok(found.map(|(owner, factor)| Self {
            assertion,
            owner,
            factor,
        }))
    }

    /// Returns whose passkey it is.
    pub(crate) const fn owner(&self) -> &User {
        &self.owner
    }

    /// Returns the credential of a sign-in with it.
    pub(crate) const fn credential(&self) -> SignInCredential {
        SignInCredential::Passkey(self.factor.id)
    }

    /// Checks the use, whose guess is counted, and records it. `asked` is the user who is known already.
    pub(crate) async fn check(
        self,
        handles: &DashboardHandles,
        asked: Option<UserId>,
        headers: &HeaderMap,
        guess: CountedGuess,
    ) -> Result<CodeCheck, Failure> {
        let (owner, factor) = (self.owner.id, &self.factor);
        let (Some(passkey), Some(expected)) = (factor.passkey(), Expected::of(headers, handles))
        else {
            return Ok(CodeCheck::Wrong);
        };
        let expectation = expected.expectation();
        let used = match check_assertion(&self.assertion, (owner, passkey), asked, &expectation) {
            Ok(used) => used,
            Err(fault) => {
                tracing::warn!(user = %owner, ?fault, "rejected passkey");
                return Ok(CodeCheck::Wrong);
            }
        };
        let now = handles.runtime.now();
        let recorded = handles.store.use_passkey(owner, factor.id, used, now);
        if !recorded.await? {
            tracing::warn!(user = %owner, "rejected passkey that was used before or copied");
            return Ok(CodeCheck::Wrong);
        }
        handles.store.take_back_guess(guess).await?;
        Ok(CodeCheck::Right)
    }
}

/// Checks the passkey of a user whose guess is counted already.
pub(crate) async fn check_user_passkey(
    handles: &DashboardHandles,
    user: UserId,
    form: &Form,
    headers: &HeaderMap,
    guess: CountedGuess,
) -> Result<CodeCheck, Failure> {
    match PresentedPasskey::find(handles, form).await? {
        Some(presented) => presented.check(handles, Some(user), headers, guess).await,
        None => Ok(CodeCheck::Wrong),
    }
}

/// Checks the passkey of a signed-in user.
pub(crate) async fn check_own_passkey(
    handles: &DashboardHandles,
    user: UserId,
    form: &Form,
    headers: &HeaderMap,
) -> Result<CodeCheck, Failure> {
    let counters = vec![GuessCounter::of_session_user(user)];
    let decision = handles.store.count_guess(counters, handles.runtime.now());
    match decision.await? {
        GuessDecision::Allowed(guess) => {
            check_user_passkey(handles, user, form, headers, guess).await
        }
        GuessDecision::Wait(wait) => Ok(CodeCheck::Wait(wait)),
    }
}

/// Returns the user whom a device stores with a new passkey.
pub(crate) fn user_handle(user: UserId) -> String {
    encode_field(user.as_bytes())
}
