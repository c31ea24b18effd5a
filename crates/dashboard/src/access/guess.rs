//! Limits guesses of passwords, by network and by email address, on all nodes together.

use super::cookie;
use crate::failure::Failure;
use crate::state::DashboardHandles;
use axum::http::HeaderMap;
use std::net::IpAddr;
use std::time::Duration;
use tributary_domain::access::Actor;
use tributary_domain::access::known_browser::KnownBrowser;
use tributary_domain::access::person::{Email, User};
use tributary_domain::access::sign_in::{CountedGuess, GuessCounter, GuessDecision};
use tributary_domain::audit::Client;
use tributary_domain::vocabulary::subnet::subnet;
use tributary_store::StoreResult;

/// Accounts with their password hashes.
type Accounts = Vec<(User, String)>;

/// A sign-in whose password may be checked.
pub(crate) struct AllowedSignIn {
    /// The counted guess.
    pub(crate) guess: CountedGuess,
    /// Accounts that the password may belong to.
    pub(crate) accounts: Accounts,
}

/// Decides whether the password of a sign-in may be checked. Returns the wait if not.
///
/// Guesses from a browser that the user has signed in with before are counted separately, for this
/// user's account only. Strangers cannot lock the user out there.
pub(crate) async fn allow_sign_in(
    handles: &DashboardHandles,
    email: &Email,
    address: Option<IpAddr>,
    headers: &HeaderMap,
) -> StoreResult<Result<AllowedSignIn, Duration>> {
    let network = address.map(|address| GuessCounter::of_network(subnet(address)));
    let mut counters = vec![GuessCounter::of_account(email)];
    counters.extend(network);
    let now = handles.runtime.now();
    let decision = handles.store.count_guess(counters, now).await?;
    let mut accounts = handles.store.users_by_email(email).await?;
    let wait = match decision {
        GuessDecision::Allowed(guess) => return Ok(Ok(AllowedSignIn { guess, accounts })),
        GuessDecision::Wait(wait) => wait,
    };
    let Some(known) = trusted_browser(handles, headers).await? else {
        return Ok(Err(wait));
    };
    accounts.retain(|(user, _)| user.id == known.user);
    if accounts.is_empty() {
        return Ok(Err(wait));
    }
    let decision = handles.store.count_guess(vec![known.counter()], now);
    Ok(match decision.await? {
        GuessDecision::Allowed(guess) => Ok(AllowedSignIn { guess, accounts }),
        GuessDecision::Wait(wait) => Err(wait),
    })
}

/// Whether a password is that of a signed-in user.
pub(crate) enum PasswordCheck {
    /// It is.
    Right,
    /// It is not.
    Wrong,
    /// It was not checked. The user has to wait this long.
    Wait(Duration),
}

/// Checks the password of a signed-in user. The guess is counted before that.
pub(crate) async fn check_own_password(
    handles: &DashboardHandles,
    user: &User,
    password: String,
) -> Result<PasswordCheck, Failure> {
    let counters = vec![GuessCounter::of_session_user(user.id)];
    let now = handles.runtime.now();
    let guess = match handles.store.count_guess(counters, now).await? {
        GuessDecision::Allowed(guess) => guess,
        GuessDecision::Wait(wait) => return Ok(PasswordCheck::Wait(wait)),
    };
    let accounts = handles.store.users_by_email(&user.email).await?;
    let own = accounts.into_iter().filter(|(it, _)| it.id == user.id);
    let hashes = own.map(|(_, hash)| hash).collect();
    let verified = handles.hasher.verify(password, hashes).await;
    let verified = verified.map_err(|error| {
        tracing::error!(%error, "failed to verify password");
        Failure::Internal
    })?;
    if !verified.contains(&true) {
        return Ok(PasswordCheck::Wrong);
    }
    handles.store.take_back_guess(guess).await?;
    Ok(PasswordCheck::Right)
}

/// Returns the user who signed in with this browser before, unless a password reset made the server
/// forget the browser.
pub(crate) async fn trusted_browser(
    handles: &DashboardHandles,
    headers: &HeaderMap,
) -> StoreResult<Option<KnownBrowser>> {
    let Some(browser) = cookie::known_browser(headers, handles) else {
        return Ok(None);
    };
    let at = handles.store.browsers_forgotten_at(browser.user).await?;
    Ok((!browser.is_forgotten(at)).then_some(browser))
}

/// Counts a guess that belongs to no account. Returns the wait if there were too many.
pub(crate) async fn count_network_guess(
    handles: &DashboardHandles,
    address: Option<IpAddr>,
) -> StoreResult<Option<Duration>> {
    let Some(address) = address else {
        return Ok(None);
    };
    let counters = vec![GuessCounter::of_network(subnet(address))];
    let decision = handles.store.count_guess(counters, handles.runtime.now());
    Ok(match decision.await? {
        GuessDecision::Allowed(_) => None,
        GuessDecision::Wait(wait) => Some(wait),
    })
}

/// Returns whether a counter has to wait. Nothing is counted.
pub(crate) async fn is_guessing(
    handles: &DashboardHandles,
    counter: GuessCounter,
) -> StoreResult<bool> {
    let wait = handles.store.guess_wait(counter, handles.runtime.now());
    Ok(wait.await?.is_some())
}

/// Writes a failed sign-in to the audit log of each account's organization. The response does not
/// wait for it, because its timing would show whether there is an account.
pub(crate) fn audit_failure(handles: &DashboardHandles, users: Vec<User>, client: Option<&Client>) {
    tracing::warn!("sign-in failed");
    if users.is_empty() {
        return;
    }
    let origin = |user| (user, super::change_origin(Actor::Service, client, handles));
    let failed = users.into_iter().map(origin).collect();
    let store = handles.store.clone();
    tokio::spawn(async move {
        if let Err(error) = store.audit_failed_sign_in(failed).await {
            tracing::error!(%error, "failed to write a failed sign-in to the audit log");
        }
    });
}

/// Counts a new password like a guess for its email address. Someone with an account for another
/// person's address could otherwise guess that person's password without failures: choose the guess
/// as their own password, sign in, and see whether the page asks for the organization.
pub(crate) async fn count_new_password(
    handles: &DashboardHandles,
    email: &Email,
) -> StoreResult<()> {
    let counter = GuessCounter::of_account(email);
    handles
        .store
        .add_guess(counter, handles.runtime.now())
        .await
}
