//! `/account` — the person's own page: the password.

use crate::access::{FormSubmission, PageContext, cookie};
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::pages::sign_in::with_cookie;
use crate::response::see_other;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tributary_domain::access::key::KeyKind;
use tributary_domain::access::person::{PASSWORD_CHARS_MIN, check_password};
use tributary_domain::access::session::Session;
use tributary_domain::access::{AnalyticsRead, Environment};
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_store::NewSession;

#[derive(Template)]
#[template(path = "account.html")]
struct AccountPage {
    shell: Shell,
    form: FormState,
    password_min: usize,
}

impl AccountPage {
    fn new(reader: &PageContext<AnalyticsRead>, faults: Faults) -> Self {
        Self {
            shell: reader.shell(Section::Account),
            // What was typed are passwords: never sent back.
            form: FormState::default().with_faults(faults),
            password_min: PASSWORD_CHARS_MIN,
        }
    }
}

/// The page.
pub(crate) async fn show(reader: PageContext<AnalyticsRead>) -> Response {
    reader.page(&AccountPage::new(&reader, Faults::new()))
}

/// Changes the password. Every session ends, and this browser gets a new one.
pub(crate) async fn change_password(
    State(handles): State<DashboardHandles>,
    posted: FormSubmission<AnalyticsRead>,
) -> Result<Response, Failure> {
    let user = &posted.session.user;
    let bug = |error| {
        tracing::error!(%error, "a password was not hashed");
        Failure::Internal
    };
    let (present, new) = (posted.form.field("present"), posted.form.field("password"));
    let mut faults = Faults::new();
    let found = handles.store.user_by_email(&user.email).await?;
    let hash = found.map(|(_, hash)| hash);
    let attempt = crate::access::Throttle::attempt(None, &user.email);
    let now = handles.source.now();
    let may_try = handles.throttle.wait(&attempt, now).is_none();
    if !may_try || !handles.hasher.verify(present, hash).await.map_err(bug)? {
        handles.throttle.record_failure(&attempt, now);
        let message = if may_try {
            "This is not your present password."
        } else {
            "Too many attempts went wrong. Try again in a few minutes."
        };
        faults.add("present", Problem::new(FaultCode::NotAllowed, message));
    }
    faults.check("password", check_password(&new));
    if !faults.is_empty() {
        let page = AccountPage::new(&posted.context, faults);
        return Ok(posted.page_with(StatusCode::UNPROCESSABLE_ENTITY, &page));
    }
    let salt = handles.source.random_bytes();
    let hash = handles.hasher.hash(new, salt).await.map_err(bug)?;
    let token = handles.source.new_key(KeyKind::Session, Environment::Live);
    let session = NewSession {
        session: Session::begin(user.id, now),
        digest: token.digest(),
    };
    let origin = posted.origin(&handles);
    handles.store.change_password(session, hash, origin).await?;
    let cookie = cookie::set(&handles, &token);
    Ok(with_cookie(see_other("/account?notice=password"), cookie))
}
