//! `/sign-in` — starts a session with email address and password.
//!
//! Neither the text nor the timing of a response reveals whether the address or the password was
//! wrong. Each sign-in creates a new session token.

use crate::access::passkey::PasskeyOffer;
use crate::access::{
    AllowedSignIn, CurrentSession, allow_sign_in, audit_failure, cookie, session_client,
    sign_on_cookie, trusted_browser,
};
use crate::failure::Failure;
use crate::pages::second_step::continue_sign_in;
use crate::pages::single_sign_on::{password_accounts, sign_in_path};
use crate::query::UrlQuery;
use crate::response::{app_page, see_other};
use crate::same_origin::SameOrigin;
use crate::state::DashboardHandles;
use crate::text::retry_message;
use askama::Template;
use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use std::time::Duration;
use tributary_domain::access::credential::SignInCredential;
use tributary_domain::access::key::KeyKind;
use tributary_domain::access::known_browser::KnownBrowser;
use tributary_domain::access::person::{Email, User};
use tributary_domain::access::session::Session;
use tributary_domain::access::{Actor, Environment};
use tributary_domain::audit::Client;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::{OrganizationId, UserId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_fields::Form;
use tributary_store::{NewSession, Organization, StoreError, StoreResult};
use url::form_urlencoded::byte_serialize;

/// Default page after sign-in. It redirects to the first page that the role may open.
const HOME: &str = "/home";

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage<'a> {
    email: &'a str,
    next: &'a str,
    fault: Option<String>,
    /// Organizations to choose from, if the password is valid for several.
    choices: Vec<(String, String)>,
    /// Sign-in page of the organization whose provider this browser used last.
    provider: Option<String>,
    /// How to sign in with a passkey.
    passkey: Option<PasskeyOffer>,
    /// Whether the server can send a link for a new password.
    sends_mail: bool,
}

impl<'a> SignInPage<'a> {
    /// Returns the form with the ways to sign in that this browser is offered.
    fn new(handles: &DashboardHandles, headers: &HeaderMap, next: &'a str) -> Self {
        Self {
            email: "",
            next,
            fault: None,
            choices: Vec::new(),
            provider: sign_on_cookie::organization(headers, handles).map(sign_in_path),
            passkey: PasskeyOffer::of(handles, &[]),
            sends_mail: handles.account_mail.is_some(),
        }
    }

    fn answer(&self, status: StatusCode, handles: &DashboardHandles) -> Response {
        app_page(status, self, handles.own_origin.is_trustworthy())
    }
}

/// Shows the form, or redirects if the user is already signed in.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    session: Result<CurrentSession, Failure>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let query = UrlQuery::of(query.as_deref());
    let next = local_path(query.get("next").unwrap_or_default());
    match session {
        Ok(_) => Ok(see_other(next)),
        Err(Failure::NotSignedIn(_) | Failure::SessionExpired) => {
            let form = SignInPage::new(&handles, &headers, next);
            Ok(form.answer(StatusCode::OK, &handles))
        }
        Err(failure) => Err(failure),
    }
}

/// Checks the password and starts a session.
pub(crate) async fn sign_in(
    _: SameOrigin,
    State(handles): State<DashboardHandles>,
    client: Option<Extension<Client>>,
    headers: HeaderMap,
    form: Form,
) -> Result<Response, Failure> {
    let (typed, next) = (form.field("email"), form.field("next"));
    let client = client.map(|Extension(client)| client);
    let refuse = |status, fault: String| {
        let form = SignInPage {
            email: &typed,
            fault: Some(fault),
            ..SignInPage::new(&handles, &headers, local_path(&next))
        };
        form.answer(status, &handles)
    };
    let wrong = || {
        let message = "Wrong email address or password.".to_owned();
        refuse(StatusCode::UNPROCESSABLE_ENTITY, message)
    };
    let Ok(email) = Email::parse(&typed) else {
        return Ok(wrong());
    };
    let address = client.as_ref().map(|client| client.address);
    let allowed = allow_sign_in(&handles, &email, address, &headers).await?;
    let AllowedSignIn { guess, accounts } = match allowed {
        Ok(allowed) => allowed,
        Err(wait) => {
            let page = refuse(StatusCode::TOO_MANY_REQUESTS, retry_message(wait));
            return Ok(with_wait(page, wait));
        }
    };
    let all: Vec<User> = accounts.iter().map(|(user, _)| user.clone()).collect();
    let users = verified_users(&handles, form.field("password"), accounts).await?;
    if users.is_empty() {
        audit_failure(&handles, all, client.as_ref());
        return Ok(wrong());
    }
    handles.store.take_back_guess(guess).await?;
    let (users, provider) = password_accounts(&handles, users).await?;
    if let (true, Some(provider)) = (users.is_empty(), provider) {
        let next: String = byte_serialize(local_path(&next).as_bytes()).collect();
        return Ok(see_other(&format!("{provider}?next={next}")));
    }
    let Some((user, hash)) = chosen_user(&users, &form.field("organization")) else {
        let users: Vec<User> = users.into_iter().map(|(user, _)| user).collect();
        let choices = organization_choices(&handles, &users).await?;
        let form = SignInPage {
            email: &typed,
            choices,
            provider: None,
            passkey: None,
            ..SignInPage::new(&handles, &headers, local_path(&next))
        };
        return Ok(form.answer(StatusCode::OK, &handles));
    };
    let (account, next) = ((user.id, hash.as_str()), local_path(&next));
    let signed_in = continue_sign_in(&handles, account, next, client.as_ref(), &headers);
    match signed_in.await {
        Err(Failure::Refused(Refusal::MemberNotFound | Refusal::CredentialChanged)) => Ok(wrong()),
        other => other,
    }
}

/// Shows the form after a refused sign-in with a passkey.
pub(crate) fn refuse_sign_in(
    handles: &DashboardHandles,
    headers: &HeaderMap,
    next: &str,
    status: StatusCode,
    fault: String,
) -> Response {
    let form = SignInPage {
        fault: Some(fault),
        ..SignInPage::new(handles, headers, next)
    };
    form.answer(status, handles)
}

/// Returns the accounts whose password this is, with its hashes.
async fn verified_users(
    handles: &DashboardHandles,
    password: String,
    accounts: Vec<(User, String)>,
) -> Result<Vec<(User, String)>, Failure> {
    let hashes = accounts.iter().map(|(_, hash)| hash.clone()).collect();
    let verified = handles.hasher.verify(password, hashes).await;
    let verified = verified.map_err(|error| {
        tracing::error!(%error, "failed to verify password");
        Failure::Internal
    })?;
    let verified = accounts.into_iter().zip(verified);
    Ok(verified
        .filter_map(|(account, it)| it.then_some(account))
        .collect())
}

/// Returns the only account, or the one in the organization that was chosen.
fn chosen_user<'a>(users: &'a [(User, String)], organization: &str) -> Option<&'a (User, String)> {
    match users {
        [only] => Some(only),
        several => several
            .iter()
            .find(|(user, _)| user.organization.to_string() == organization),
    }
}

/// Returns the organizations of these accounts, for someone who uses one password for all of them.
async fn organization_choices(
    handles: &DashboardHandles,
    users: &[User],
) -> Result<Vec<(String, String)>, Failure> {
    let all = handles.store.organizations().await?;
    let is_choice = |one: &&Organization| users.iter().any(|user| user.organization == one.id);
    let choice = |one: &Organization| (one.id.to_string(), one.name.as_str().to_owned());
    Ok(all.iter().filter(is_choice).map(choice).collect())
}

/// Returns the names of organizations, which make a password easy to guess.
pub(crate) async fn organization_names(
    handles: &DashboardHandles,
    wanted: &[OrganizationId],
) -> StoreResult<Vec<String>> {
    let all = handles.store.organizations().await?.into_iter();
    let found = all.filter(|one| wanted.contains(&one.id));
    Ok(found.map(|one| one.name.as_str().to_owned()).collect())
}

/// A sign-in that was checked.
pub(crate) struct CheckedSignIn {
    pub(crate) user: UserId,
    pub(crate) credential: SignInCredential,
    /// When the user proved who they are.
    pub(crate) proved_at: Timestamp,
}

impl CheckedSignIn {
    /// Returns the sign-in of a user whose password, with this hash, was checked now.
    pub(crate) fn with_password(
        handles: &DashboardHandles,
        (user, password_hash): (UserId, &str),
        has_second_step: bool,
    ) -> Self {
        Self {
            user,
            credential: SignInCredential::Password {
                hash: password_hash.to_owned(),
                has_second_step,
            },
            proved_at: handles.runtime.now(),
        }
    }
}

/// Starts a session. Returns its cookie, and the one that makes the browser known.
pub(crate) async fn begin_checked_session(
    handles: &DashboardHandles,
    checked: CheckedSignIn,
    client: Option<&Client>,
    headers: &HeaderMap,
) -> Result<[HeaderValue; 2], StoreError> {
    let (now, seen) = (handles.runtime.now(), session_client(headers, client));
    let user = checked.user;
    let token = handles.runtime.new_key(KeyKind::Session, Environment::Live);
    let session = NewSession {
        session: Session {
            method: checked.credential.method(),
            proved_at: checked.proved_at,
            ..Session::begin(user, now, seen)
        },
        digest: token.digest(),
        credential: checked.credential,
    };
    let origin = crate::access::change_origin(Actor::User(user), client, handles);
    handles.store.begin_session(session, origin).await?;
    end_replaced_session(handles, client, headers).await?;
    let known = trusted_browser(handles, headers).await?;
    let known = known.filter(|known| known.user == user);
    let browser = known.map_or_else(|| new_browser(handles, user), |known| known.renewed(now));
    Ok([
        cookie::set(handles, &token),
        cookie::set_known_browser(handles, &browser),
    ])
}

/// Ends the session whose cookie is replaced, because it could not be ended later. The audit log names
/// its own user, who may be another one, in another organization.
async fn end_replaced_session(
    handles: &DashboardHandles,
    client: Option<&Client>,
    headers: &HeaderMap,
) -> StoreResult<()> {
    let Some(replaced) = cookie::token(headers, handles) else {
        return Ok(());
    };
    let Some(found) = handles.store.session(replaced.digest()).await? else {
        return Ok(());
    };
    let origin = crate::access::change_origin(Actor::User(found.user.id), client, handles);
    handles.store.end_session(replaced.digest(), origin).await
}

/// Makes a browser known to a user.
pub(crate) fn new_browser(handles: &DashboardHandles, user: UserId) -> KnownBrowser {
    KnownBrowser {
        user,
        since: handles.runtime.now(),
        random: handles.runtime.random_bytes(),
    }
}

/// Adds cookies to a response.
pub(crate) fn with_cookies<const N: usize>(
    mut response: Response,
    cookies: [HeaderValue; N],
) -> Response {
    for cookie in cookies {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

pub(crate) fn with_wait(mut response: Response, wait: Duration) -> Response {
    let seconds = HeaderValue::from(wait.as_secs() + 1);
    response.headers_mut().insert(header::RETRY_AFTER, seconds);
    response
}

/// Returns the page after sign-in. Only local paths are allowed, to prevent open redirects.
pub(crate) fn local_path(next: &str) -> &str {
    let path = next.split(['?', '#']).next().unwrap_or_default();
    let is_ours = is_plain(next) && is_local(path) && !hides_character(path);
    if is_ours { next } else { HOME }
}

/// Returns whether text has only visible ASCII characters other than backslashes, which browsers
/// read as slashes. Browsers drop tabs and line breaks, and trim spaces and control characters.
fn is_plain(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'\\')
}

/// Returns whether a path is absolute and does not name another host. `/.//host` also ends at
/// another host when a browser removes the dot segment.
fn is_local(path: &str) -> bool {
    path.starts_with('/') && !path.contains("//") && !path.split('/').any(is_dot_segment)
}

fn is_dot_segment(segment: &str) -> bool {
    matches!(segment, "." | "..")
}

/// Returns whether a path encodes a character that would not be allowed as it is, or another escape.
/// Proxies and browsers differ in when and how often they decode a path. No page needs such a path.
fn hides_character(path: &str) -> bool {
    let escapes = path.split('%').skip(1);
    let mut bytes = escapes.map(|rest| {
        let digits = rest.get(..2).filter(|digits| !digits.starts_with('+'));
        digits.and_then(|digits| u8::from_str_radix(digits, 16).ok())
    });
    bytes.any(|byte| {
        byte.is_none_or(|byte| {
            byte.is_ascii_control() || matches!(byte, b' ' | b'/' | b'\\' | b'.' | b'%')
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("/apps/x/events?name=a", "/apps/x/events?name=a")]
    #[case("", HOME)]
    #[case("https://evil.test/", HOME)]
    #[case("//evil.test/", HOME)]
    #[case("/\\evil.test/", HOME)]
    #[case("/a\r\nSet-Cookie: x", HOME)]
    #[case("/apps/x?range=7d&metric=a%2Fb", "/apps/x?range=7d&metric=a%2Fb")]
    #[case("/apps/x?next=//evil.test", "/apps/x?next=//evil.test")]
    #[case("/audit-log?before=aud_0#top", "/audit-log?before=aud_0#top")]
    #[case("/\0/evil.test", HOME)]
    #[case("/\u{1}/evil.test", HOME)]
    #[case("/\u{b}/evil.test", HOME)]
    #[case("/\u{c}/evil.test", HOME)]
    #[case("/\u{7f}/evil.test", HOME)]
    #[case("/\u{85}/evil.test", HOME)]
    #[case("/\t/evil.test", HOME)]
    #[case("/ /evil.test", HOME)]
    #[case(" //evil.test", HOME)]
    #[case("/apps/x?a=\u{1b}[2J", HOME)]
    #[case("/%5Cevil.test", HOME)]
    #[case("/%5c%5cevil.test", HOME)]
    #[case("/%2Fevil.test", HOME)]
    #[case("/%2f%2fevil.test", HOME)]
    #[case("/%252Fevil.test", HOME)]
    #[case("/%09/evil.test", HOME)]
    #[case("/%0d%0aSet-Cookie:x", HOME)]
    #[case("/%00", HOME)]
    #[case("/a//evil.test", HOME)]
    #[case("/.//evil.test", HOME)]
    #[case("/x/..//evil.test", HOME)]
    #[case("/%2e%2e/evil.test", HOME)]
    #[case("/apps/x/%zz", HOME)]
    #[case("/apps/x/%2", HOME)]
    #[case("/apps/x/devices/a%3Ab", "/apps/x/devices/a%3Ab")]
    #[case("/ｅvil", HOME)]
    #[case("javascript:alert(1)", HOME)]
    #[case("apps/x", HOME)]
    fn redirects_only_to_local_paths(#[case] next: &str, #[case] expected: &str) {
        assert_eq!(local_path(next), expected);
    }
}
