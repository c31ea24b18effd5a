//! `/sign-in/code` — the second step of a sign-in, after the password.

use super::sign_in::{begin_session, local_path, with_cookies, with_wait};
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
use tributary_domain::access::factor::pending::PendingSignIn;
use tributary_domain::access::person::User;
use tributary_domain::audit::Client;
use tributary_domain::vocabulary::id::UserId;
use tributary_fields::Form;
use url::form_urlencoded::Serializer;

/// The page of the second step.
const PATH: &str = "/sign-in/code";

#[derive(Template)]
#[template(path = "second_step.html")]
struct SecondStepPage<'a> {
    next: &'a str,
    fault: Option<String>,
}

impl SecondStepPage<'_> {
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
        let cookies = begin_session(handles, user, client, headers).await?;
        return Ok(with_cookies(see_other(next), cookies));
    }
    let pending = PendingSignIn::begin(user, password_hash, handles.runtime.now());
    let second = see_other(&path_with_next(PATH, next));
    Ok(with_cookies(
        second,
        [cookie::set_pending(handles, &pending)],
    ))
}

/// Returns the user of a sign-in that may continue.
async fn pending_user(
    headers: &HeaderMap,
    handles: &DashboardHandles,
) -> Result<Option<User>, Failure> {
    let Some(pending) = cookie::pending(headers, handles) else {
        return Ok(None);
    };
    let account = handles.store.account(pending.user).await?;
    let now = handles.runtime.now();
    Ok(account
        .filter(|(_, hash)| pending.continues(hash, now))
        .map(|(user, _)| user))
}

/// Shows the form. Redirects to the sign-in page if no password was entered.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let query = UrlQuery::of(query.as_deref());
    let next = local_path(query.get("next").unwrap_or_default());
    if pending_user(&headers, &handles).await?.is_none() {
        return Ok(see_other(&path_with_next("/sign-in", next)));
    }
    let page = SecondStepPage { next, fault: None };
    Ok(page.answer(StatusCode::OK, &handles))
}

/// Checks the code and starts a session.
pub(crate) async fn submit(
    _: SameOrigin,
    State(handles): State<DashboardHandles>,
    client: Option<Extension<Client>>,
    headers: HeaderMap,
    form: Form,
) -> Result<Response, Failure> {
    let next = form.field("next");
    let next = local_path(&next);
    let Some(user) = pending_user(&headers, &handles).await? else {
        return Ok(see_other(&path_with_next("/sign-in", next)));
    };
    let client = client.map(|Extension(client)| client);
    let address = client.as_ref().map(|client| client.address);
    let refuse = |status, fault| SecondStepPage { next, fault }.answer(status, &handles);
    let wait_page = |wait| {
        let page = refuse(StatusCode::TOO_MANY_REQUESTS, Some(retry_message(wait)));
        with_wait(page, wait)
    };
    let guess = match count_code_guess(&handles, &user, address, &headers).await? {
        Ok(guess) => guess,
        Err(wait) => return Ok(wait_page(wait)),
    };
    let origin = change_origin(Actor::User(user.id), client.as_ref(), &handles);
    let typed = form.field("code");
    match check_code(&handles, &user, &typed, guess, origin).await? {
        CodeCheck::Right => {
            let cookies = begin_session(&handles, user.id, client.as_ref(), &headers).await?;
            let signed_in = with_cookies(see_other(next), cookies);
            Ok(with_cookies(signed_in, [cookie::clear_pending(&handles)]))
        }
        CodeCheck::Wrong => {
            audit_failure(&handles, vec![user], client.as_ref());
            let fault = "Wrong code. A code of the app works once; wait for the next one.";
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            Ok(refuse(status, Some(fault.to_owned())))
        }
        CodeCheck::Wait(wait) => Ok(wait_page(wait)),
    }
}
