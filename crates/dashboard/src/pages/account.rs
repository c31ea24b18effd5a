//! `/account` — the user's account, where they change their password.

use crate::access::{FormSubmission, PageContext, cookie, count_new_password};
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::pages::sign_in::with_cookies;
use crate::password::salt_of;
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
use tributary_domain::access::sign_in::{GuessCounter, GuessDecision};
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
    fn new(context: &PageContext<AnalyticsRead>, faults: Faults) -> Self {
        Self {
            shell: context.shell(Section::Account),
            // Typed passwords are never sent back.
            form: FormState::default().with_faults(faults),
            password_min: PASSWORD_CHARS_MIN,
        }
    }
}

/// Shows the page.
pub(crate) async fn show(context: PageContext<AnalyticsRead>) -> Response {
    context.page(&AccountPage::new(&context, Faults::new()))
}

/// Changes the password, ends all sessions, and starts a new one for this browser.
pub(crate) async fn change_password(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AnalyticsRead>,
) -> Result<Response, Failure> {
    let user = &submission.session.user;
    let bug = |error| {
        tracing::error!(%error, "failed to hash password");
        Failure::Internal
    };
    let (current, new) = (
        submission.form.field("current"),
        submission.form.field("password"),
    );
    let mut faults = Faults::new();
    let accounts = handles.store.users_by_email(&user.email).await?;
    // The accounts of an address share their salt; see `password::Hasher::verify`.
    let salt = accounts.iter().find_map(|(_, hash)| salt_of(hash));
    let own = accounts.into_iter().filter(|(it, _)| it.id == user.id);
    let hashes: Vec<String> = own.map(|(_, hash)| hash).collect();
    let counters = vec![GuessCounter::of_account(&user.email)];
    let now = handles.runtime.now();
    let decision = handles.store.count_guess(counters, now).await?;
    let verified = handles.hasher.verify(current, hashes).await.map_err(bug)?;
    let is_right = verified.contains(&true);
    let fault = match decision {
        GuessDecision::Allowed(guess) if is_right => {
            handles.store.take_back_guess(guess).await?;
            None
        }
        GuessDecision::Allowed(_) => Some("This is not your current password."),
        GuessDecision::Wait(_) => Some("Too many failed attempts. Try again in a few minutes."),
    };
    if let Some(message) = fault {
        faults.add("current", Problem::new(FaultCode::NotAllowed, message));
    }
    faults.check("password", check_password(&new, user.email.as_str()));
    if !faults.is_empty() {
        let page = AccountPage::new(&submission.context, faults);
        return Ok(submission.page_with(StatusCode::UNPROCESSABLE_ENTITY, &page));
    }
    let salt = salt.unwrap_or_else(|| handles.runtime.random_bytes());
    let hash = handles.hasher.hash(new, salt).await.map_err(bug)?;
    let token = handles.runtime.new_key(KeyKind::Session, Environment::Live);
    let session = NewSession {
        session: Session::begin(user.id, now),
        digest: token.digest(),
    };
    let origin = submission.origin(&handles);
    handles.store.change_password(session, hash, origin).await?;
    count_new_password(&handles, &user.email).await?;
    let cookie = cookie::set(&handles, &token);
    let changed = see_other("/account?notice=password");
    Ok(with_cookies(changed, [cookie]))
}
