//! `/reset/{token}` — sets a new password with a one-time link.
//!
//! The token is the only credential. Opening the page does not use the link. Setting the password does
//! not sign in, so that a second factor is asked for.

use crate::access::{change_origin, cookie, count_new_password, link_token};
use crate::failure::Failure;
use crate::pages::sign_in::{new_browser, organization_names, with_cookies};
use crate::password::salt_of;
use crate::response::{app_page, page};
use crate::same_origin::SameOrigin;
use crate::state::DashboardHandles;
use askama::Template;
use axum::Extension;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use tributary_domain::access::Actor;
use tributary_domain::access::key::KeyKind;
use tributary_domain::access::password_reset::PasswordReset;
use tributary_domain::access::person::{PASSWORD_CHARS_MIN, check_password};
use tributary_domain::audit::Client;
use tributary_domain::vocabulary::digest::Digest;
use tributary_fields::Form;

/// The form, or the message that the password was set.
#[derive(Template)]
#[template(path = "reset.html")]
struct ResetPage<'a> {
    email: &'a str,
    password_min: usize,
    fault: Option<String>,
    is_done: bool,
}

/// A link that exists and has not expired.
pub(crate) struct ValidReset {
    reset: PasswordReset,
    digest: Digest,
}

impl FromRequestParts<DashboardHandles> for ValidReset {
    type Rejection = Failure;

    async fn from_request_parts(
        parts: &mut Parts,
        handles: &DashboardHandles,
    ) -> Result<Self, Failure> {
        let token = link_token(parts, handles, KeyKind::Reset).await;
        let token = token.ok_or(Failure::ResetLinkInvalid)?;
        let digest = token.digest();
        let found = handles.store.password_reset(digest).await?;
        let reset = found
            .filter(|reset| reset.is_valid(handles.runtime.now()))
            .ok_or(Failure::ResetLinkInvalid)?;
        Ok(Self { reset, digest })
    }
}

impl ValidReset {
    fn form(&self, fault: Option<String>, handles: &DashboardHandles) -> Response {
        let status = match fault {
            Some(_) => StatusCode::UNPROCESSABLE_ENTITY,
            None => StatusCode::OK,
        };
        let form = ResetPage {
            email: self.reset.email.as_str(),
            password_min: PASSWORD_CHARS_MIN,
            fault,
            is_done: false,
        };
        app_page(status, &form, handles.own_origin.is_trustworthy())
    }
}

/// Shows the form.
pub(crate) async fn show(State(handles): State<DashboardHandles>, link: ValidReset) -> Response {
    link.form(None, &handles)
}

/// Sets the password.
pub(crate) async fn redeem(
    _: SameOrigin,
    State(handles): State<DashboardHandles>,
    client: Option<Extension<Client>>,
    link: ValidReset,
    form: Form,
) -> Result<Response, Failure> {
    let (email, password) = (&link.reset.email, form.field("password"));
    let accounts = handles.store.users_by_email(email).await?;
    let organizations: Vec<_> = accounts.iter().map(|(user, _)| user.organization).collect();
    let organizations = organization_names(&handles, &organizations).await?;
    if let Err(problem) = check_password(&password, email.as_str(), &organizations) {
        return Ok(link.form(Some(problem.message), &handles));
    }
    // Accounts that are created meanwhile keep sharing the salt; see `password::Hasher::verify`.
    let salt = accounts.iter().find_map(|(_, hash)| salt_of(hash));
    let salt = salt.unwrap_or_else(|| handles.runtime.random_bytes());
    let hash = handles.hasher.hash(password, salt).await.map_err(|error| {
        tracing::error!(%error, "failed to hash password");
        Failure::Internal
    })?;
    count_new_password(&handles, email).await?;
    let client = client.map(|Extension(client)| client);
    let origin = change_origin(Actor::Service, client.as_ref(), &handles);
    let redeemed = handles
        .store
        .redeem_password_reset(link.digest, hash, origin);
    let users = redeemed.await?;
    tracing::info!(accounts = users.len(), "password reset");
    let done = ResetPage {
        email: email.as_str(),
        password_min: PASSWORD_CHARS_MIN,
        fault: None,
        is_done: true,
    };
    let done = page(StatusCode::OK, &done);
    // Guesses from a known browser are counted separately. Otherwise a person who tried several
    // passwords before the reset would have to wait.
    Ok(match users.first() {
        Some(user) => {
            let browser = new_browser(&handles, user.id);
            with_cookies(done, [cookie::set_known_browser(&handles, &browser)])
        }
        None => done,
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::{FORM, NOW, PASSWORD, PageResponse, SAME_ORIGIN, TestDashboard};
    use axum::http::StatusCode;
    use rstest::rstest;
    use std::time::Duration;
    use tributary_domain::access::key::KeyKind;
    use tributary_domain::access::password_reset::{OPERATOR_RESET_LIFETIME, PasswordReset};
    use tributary_domain::access::person::Email;
    use tributary_domain::access::{Actor, Environment};
    use tributary_domain::audit::AuditContext;
    use tributary_store::NewPasswordReset;

    const EMAIL: &str = "you@example.com";
    const NEW: &str = "six-lamps-on-the-quiet-pier";

    async fn post(dashboard: &TestDashboard, path: &str, body: &str) -> PageResponse {
        dashboard.post(path, &[SAME_ORIGIN, FORM], body).await
    }

    /// Creates an account. Returns its cookies.
    async fn account(dashboard: &TestDashboard) -> Vec<String> {
        let path = format!("/setup/{}", dashboard.setup_link(|_| {}).await);
        let body = format!("email={EMAIL}&password={PASSWORD}");
        cookies(&post(dashboard, &path, &body).await)
    }

    fn cookies(response: &PageResponse) -> Vec<String> {
        let cookies = response.headers.get_all("set-cookie").iter();
        let pair = |text: &str| text.split(';').next().unwrap().to_owned();
        cookies.map(|one| pair(one.to_str().unwrap())).collect()
    }

    async fn sign_in(dashboard: &TestDashboard, password: &str, cookie: &str) -> StatusCode {
        let headers = [SAME_ORIGIN, FORM, ("cookie", cookie)];
        let body = format!("email={EMAIL}&password={password}");
        dashboard.post("/sign-in", &headers, &body).await.status
    }

    /// Resets the accounts as the operator does, a second from now. Returns the link's path.
    async fn reset(dashboard: &TestDashboard, life: Duration) -> String {
        let token = dashboard.source.new_key(KeyKind::Reset, Environment::Live);
        let new = NewPasswordReset {
            reset: PasswordReset {
                email: Email::parse(EMAIL).unwrap(),
                expires_at: NOW.plus(life),
            },
            digest: token.digest(),
        };
        let origin = AuditContext {
            at: NOW.plus(Duration::from_secs(1)),
            ..dashboard.source.origin(Actor::Operator, None, None)
        };
        let locked = "$argon2id$v=19$m=19456,t=2,p=1$bm9uZW5vbmVub25lbm9uZQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        let done = dashboard
            .store
            .reset_accounts(new, locked.to_owned(), origin);
        assert_eq!(done.await.unwrap().len(), 1);
        format!("/reset/{}", token.reveal())
    }

    #[tokio::test]
    async fn a_link_sets_the_password_once() {
        let dashboard = TestDashboard::start().await;
        let old = account(&dashboard).await;
        let path = reset(&dashboard, OPERATOR_RESET_LIFETIME).await;
        assert_eq!(
            sign_in(&dashboard, PASSWORD, "").await,
            StatusCode::UNPROCESSABLE_ENTITY,
            "the old password ends with the reset"
        );
        let form = dashboard.get(&path).await;
        assert_eq!(form.status, StatusCode::OK);
        assert!(form.text.contains(EMAIL));
        // The form posts to its own URL, so the token does not appear in the page.
        assert!(!form.text.contains(path.rsplit('/').next().unwrap()));
        let weak = post(&dashboard, &path, "password=short").await;
        assert_eq!(weak.status, StatusCode::UNPROCESSABLE_ENTITY);

        let done = post(&dashboard, &path, &format!("password={NEW}")).await;
        assert_eq!(done.status, StatusCode::OK);
        assert!(done.text.contains("href=\"/sign-in\""), "{}", done.text);
        assert_eq!(sign_in(&dashboard, NEW, "").await, StatusCode::SEE_OTHER);
        for again in [
            dashboard.get(&path).await,
            post(&dashboard, &path, &format!("password={NEW}")).await,
        ] {
            assert_eq!(again.status, StatusCode::NOT_FOUND);
            assert!(again.text.contains("tributary admin user reset"));
        }
        let headers = [("cookie", old[0].as_str())];
        let account = dashboard.send(axum::http::Method::GET, "/account", &headers, "");
        assert_eq!(account.await.status, StatusCode::SEE_OTHER, "signed out");
    }

    #[tokio::test]
    async fn the_guesses_of_a_known_browser_end_with_a_reset() {
        let dashboard = TestDashboard::start().await;
        let old = account(&dashboard).await;
        while sign_in(&dashboard, "wrong", "").await != StatusCode::TOO_MANY_REQUESTS {}
        assert_eq!(
            sign_in(&dashboard, "wrong", &old[1]).await,
            StatusCode::UNPROCESSABLE_ENTITY
        );
        reset(&dashboard, OPERATOR_RESET_LIFETIME).await;
        assert_eq!(
            sign_in(&dashboard, "wrong", &old[1]).await,
            StatusCode::TOO_MANY_REQUESTS
        );
    }

    #[tokio::test]
    async fn who_forgot_the_password_need_not_wait() {
        let dashboard = TestDashboard::start().await;
        account(&dashboard).await;
        let path = reset(&dashboard, OPERATOR_RESET_LIFETIME).await;
        while sign_in(&dashboard, "wrong", "").await != StatusCode::TOO_MANY_REQUESTS {}
        let done = post(&dashboard, &path, &format!("password={NEW}")).await;
        let browser = cookies(&done).remove(0);
        assert_eq!(
            sign_in(&dashboard, NEW, "").await,
            StatusCode::TOO_MANY_REQUESTS
        );
        assert_eq!(
            sign_in(&dashboard, NEW, &browser).await,
            StatusCode::SEE_OTHER
        );
    }

    #[rstest]
    #[case::garbage("nonsense")]
    #[case::not_text("%ff")]
    #[case::wrong_checksum("reset_000000000000000000000000000000000000000")]
    #[tokio::test]
    async fn rejects_malformed_tokens(#[case] token: &str) {
        let dashboard = TestDashboard::start().await;
        let response = dashboard.get(&format!("/reset/{token}")).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND);
        assert_eq!(response.text, dashboard.get("/reset/0").await.text);
    }

    #[tokio::test]
    async fn rejects_expired_and_unknown_links_and_other_tokens() {
        let dashboard = TestDashboard::start().await;
        account(&dashboard).await;
        let expired = reset(&dashboard, Duration::ZERO).await;
        let unknown = dashboard.source.new_key(KeyKind::Reset, Environment::Live);
        let setup = dashboard.setup_link(|_| {}).await;
        for path in [
            expired,
            format!("/reset/{}", unknown.reveal()),
            format!("/reset/{setup}"),
        ] {
            let response = post(&dashboard, &path, &format!("password={NEW}")).await;
            assert_eq!(response.status, StatusCode::NOT_FOUND);
        }
    }

    #[tokio::test]
    async fn other_origins_are_refused() {
        let dashboard = TestDashboard::start().await;
        account(&dashboard).await;
        let path = reset(&dashboard, OPERATOR_RESET_LIFETIME).await;
        let body = format!("password={NEW}");
        let response = dashboard.post(&path, &[FORM], &body).await;
        assert_eq!(response.status, StatusCode::FORBIDDEN);
    }
}
