//! Checks codes of authenticator apps and recovery codes. Each is a guess, counted before it is checked.

use super::guess::trusted_browser;
use crate::failure::Failure;
use crate::state::DashboardHandles;
use axum::http::HeaderMap;
use std::net::IpAddr;
use std::time::Duration;
use tributary_domain::access::factor::recovery::RecoveryCode;
use tributary_domain::access::factor::totp::{TotpSecret, is_code};
use tributary_domain::access::factor::{FactorVerifier, secret_scope};
use tributary_domain::access::person::User;
use tributary_domain::access::sign_in::{CountedGuess, GuessCounter, GuessDecision};
use tributary_domain::audit::AuditContext;
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::vocabulary::id::FactorId;
use tributary_domain::vocabulary::subnet::subnet;

/// Whether a code is right.
pub(crate) enum CodeCheck {
    /// It is, and was used by this check.
    Right,
    /// It is not, or was used before.
    Wrong,
    /// It was not checked. The user has to wait this long.
    Wait(Duration),
}

/// Counts a guess of a second factor at sign-in. Returns the wait if it may not be checked. Guesses
/// from a browser in which the user signed in before are counted separately, so that a stranger who
/// knows the password cannot lock the user out.
pub(crate) async fn count_code_guess(
    handles: &DashboardHandles,
    user: &User,
    address: Option<IpAddr>,
    headers: &HeaderMap,
) -> Result<Result<CountedGuess, Duration>, Failure> {
    let mut counters = vec![GuessCounter::of_second_factor(user.id)];
    counters.extend(address.map(|address| GuessCounter::of_network(subnet(address))));
    let now = handles.runtime.now();
    let wait = match handles.store.count_guess(counters, now).await? {
        GuessDecision::Allowed(guess) => return Ok(Ok(guess)),
        GuessDecision::Wait(wait) => wait,
    };
    let known = trusted_browser(handles, headers).await?;
    let Some(known) = known.filter(|known| known.user == user.id) else {
        return Ok(Err(wait));
    };
    let decision = handles.store.count_guess(vec![known.counter()], now);
    Ok(match decision.await? {
        GuessDecision::Allowed(guess) => Ok(guess),
        GuessDecision::Wait(wait) => Err(wait),
    })
}

/// Checks a code at sign-in, whose guess is counted: of the authenticator app, or a recovery code.
pub(crate) async fn check_code(
    handles: &DashboardHandles,
    user: &User,
    typed: &str,
    guess: CountedGuess,
    origin: AuditContext,
) -> Result<CodeCheck, Failure> {
    let is_right = if is_code(typed) {
        uses_app(handles, user, typed).await?
    } else if let Some(code) = RecoveryCode::parse(typed) {
        let used = handles
            .store
            .use_recovery_code(user.id, code.digest(user.id), origin);
        used.await?
    } else {
        false
    };
    if !is_right {
        return Ok(CodeCheck::Wrong);
    }
    handles.store.take_back_guess(guess).await?;
    Ok(CodeCheck::Right)
}

/// Checks the code of a signed-in user's authenticator app.
pub(crate) async fn check_own_code(
    handles: &DashboardHandles,
    user: &User,
    typed: &str,
) -> Result<CodeCheck, Failure> {
    let counters = vec![GuessCounter::of_session_user(user.id)];
    let decision = handles.store.count_guess(counters, handles.runtime.now());
    let guess = match decision.await? {
        GuessDecision::Allowed(guess) => guess,
        GuessDecision::Wait(wait) => return Ok(CodeCheck::Wait(wait)),
    };
    if !uses_app(handles, user, typed).await? {
        return Ok(CodeCheck::Wrong);
    }
    handles.store.take_back_guess(guess).await?;
    Ok(CodeCheck::Right)
}

async fn uses_app(handles: &DashboardHandles, user: &User, typed: &str) -> Result<bool, Failure> {
    let now = handles.runtime.now();
    let factors = handles.store.factors_of(user.id).await?;
    for factor in &factors {
        let FactorVerifier::Totp { sealed, last_step } = &factor.verifier else {
            continue;
        };
        let secret = open_secret(handles, user, factor.id, sealed)?;
        if let Some(step) = secret.accepted_step(typed, now, *last_step) {
            return Ok(handles
                .store
                .use_totp(user.id, factor.id, step, now)
                .await?);
        }
    }
    Ok(false)
}

fn open_secret(
    handles: &DashboardHandles,
    user: &User,
    factor: FactorId,
    sealed: &SealedSecret,
) -> Result<TotpSecret, Failure> {
    let scope = secret_scope(user.organization, user.id, factor);
    let scope = scope.each_ref().map(String::as_str);
    let opened = handles.keyring.open(&scope, sealed).ok();
    let secret = opened.and_then(|bytes| TotpSecret::from_slice(&bytes));
    secret.ok_or_else(|| {
        tracing::error!(%factor, "failed to decrypt the secret of an authenticator app");
        Failure::Internal
    })
}
