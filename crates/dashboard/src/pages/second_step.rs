//! `/sign-in/code` — the second step of a sign-in, after the password.

use super::sign_in::{CheckedSignIn, begin_checked_session, local_path, with_cookies, with_wait};
use crate::access::passkey::{PasskeyOffer, check_user_passkey, has_passkey};
use crate::access::{
    CodeCheck, audit_failure, change_origin, check_code, cookie, count_code_guess,
};
use crate::failure::Failure;
use crate::query::UrlQuery;
use crate::response::{app_page, see_other};
use crate::same_origin::SameOrigin;
use crate::state::DashboardHandles;
use crate::text::retry_message;
use askama::Template;
use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use tributary_domain::access::Actor;
use tributary_domain::access::factor::FactorKind;
use tributary_domain::access::factor::pending::PendingSignIn;
use tributary_domain::access::person::User;
use tributary_domain::audit::Client;
use tributary_domain::vocabulary::id::UserId;
use tributary_fields::Form;
use tributary_store::StoreResult;
use url::form_urlencoded::Serializer;

/// The page of the second step.
const PATH: &str = "/sign-in/code";

#[derive(Template)]
#[template(path = "second_step.html")]
struct SecondStepPage<'a> {
    next: &'a str,
    fault: Option<String>,
    /// Whether the user has an authenticator app. Otherwise, only a recovery code can be typed.
    has_app: bool,
    /// How to use a passkey instead.
    passkey: Option<PasskeyOffer>,
}

impl<'a> SecondStepPage<'a> {
    async fn load(handles: &DashboardHandles, user: &User, next: &'a str) -> StoreResult<Self> {
        let factors = handles.store.factors_of(user.id).await?;
        Ok(Self {
            next,
            fault: None,
            has_app: factors.iter().any(|one| one.kind() == FactorKind::Totp),
            passkey: PasskeyOffer::of_user(handles, &factors),
        })
    }

    fn refuse(mut self, status: StatusCode, fault: String, handles: &DashboardHandles) -> Response {
        self.fault = Some(fault);
        self.answer(status, handles)
    }

    fn answer(&self, status: StatusCode, handles: &DashboardHandles) -> Response {
        app_page(status, self, handles.own_origin.is_trustworthy())
    }
}

fn path_with_next(path: &str, next: &str) -> String {
    let query = Serializer::new(String::new())
        .append_pair("next", next)
        .finish();
    format!("{path}?{query}")
}

/// Continues a sign-in whose password was right: with the second step if the user has a second factor,
/// otherwise with a session.
pub(crate) async fn continue_sign_in(
    handles: &DashboardHandles,
    (user, password_hash): (UserId, &str),
    next: &str,
    client: Option<&Client>,
    headers: &HeaderMap,
) -> Result<Response, Failure> {
    if handles.store.factors_of(user).await?.is_empty() {
        let checked = CheckedSignIn::with_password(handles, (user, password_hash), false);
        let cookies = begin_checked_session(handles, checked, client, headers).await?;
        return Ok(with_cookies(see_other(next), cookies));
    }
    let pending = PendingSignIn::begin(user, password_hash, handles.runtime.now());
    let second = see_other(&path_with_next(PATH, next));
    Ok(with_cookies(
        second,
        [cookie::set_pending(handles, &pending)],
    ))
}

/// Returns the user of a sign-in that may continue, with the hash of the password that was right.
async fn pending_user(
    headers: &HeaderMap,
    handles: &DashboardHandles,
) -> Result<Option<(User, String)>, Failure> {
    let Some(pending) = cookie::pending(headers, handles) else {
        return Ok(None);
    };
    let account = handles.store.account(pending.user).await?;
    let now = handles.runtime.now();
    Ok(account.filter(|(_, hash)| pending.continues(hash, now)))
}

/// Shows the form. Redirects to the sign-in page if no password was entered.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let query = UrlQuery::of(query.as_deref());
    let next = local_path(query.get("next").unwrap_or_default());
    let Some((user, _hash)) = pending_user(&headers, &handles).await? else {
        return Ok(see_other(&path_with_next("/sign-in", next)));
    };
    let page = SecondStepPage::load(&handles, &user, next).await?;
    Ok(page.answer(StatusCode::OK, &handles))
}

/// Checks the code or the passkey, and starts a session.
pub(crate) async fn submit(
    _: SameOrigin,
    State(handles): State<DashboardHandles>,
    client: Option<Extension<Client>>,
    headers: HeaderMap,
    form: Form,
) -> Result<Response, Failure> {
    let next = form.field("next");
    let next = local_path(&next);
    let Some((user, hash)) = pending_user(&headers, &handles).await? else {
        return Ok(see_other(&path_with_next("/sign-in", next)));
    };
    let client = client.map(|Extension(client)| client);
    let address = client.as_ref().map(|client| client.address);
    let page = SecondStepPage::load(&handles, &user, next).await?;
    let wait_page = |page: SecondStepPage<'_>, wait| {
        let status = StatusCode::TOO_MANY_REQUESTS;
        with_wait(page.refuse(status, retry_message(wait), &handles), wait)
    };
    let guess = match count_code_guess(&handles, &user, address, &headers).await? {
        Ok(guess) => guess,
        Err(wait) => return Ok(wait_page(page, wait)),
    };
    let is_passkey = has_passkey(&form);
    let checked = if is_passkey {
        check_user_passkey(&handles, user.id, &form, &headers, guess).await?
    } else {
        let origin = change_origin(Actor::User(user.id), client.as_ref(), &handles);
        check_code(&handles, &user, &form.field("code"), guess, origin).await?
    };
    match checked {
        CodeCheck::Right => {
            let account = (user.id, hash.as_str());
            let both = CheckedSignIn::with_password(&handles, account, true);
            let cookies = begin_checked_session(&handles, both, client.as_ref(), &headers).await?;
            let signed_in = with_cookies(see_other(next), cookies);
            Ok(with_cookies(signed_in, [cookie::clear_pending(&handles)]))
        }
        CodeCheck::Wrong => {
            audit_failure(&handles, vec![user], client.as_ref());
            let fault = if is_passkey {
                "This passkey was not accepted. Try again."
            } else {
                "Wrong code. A code of the app works once; wait for the next one."
            };
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            Ok(page.refuse(status, fault.to_owned(), &handles))
        }
        CodeCheck::Wait(wait) => Ok(wait_page(page, wait)),
    }
}
