//! `/account` — the user's account, where they change their password and end sessions.

use crate::access::{
    FormSubmission, PageContext, PasswordCheck, check_own_password, cookie, count_new_password,
};
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::pages::factors::FactorLine;
use crate::pages::keys::{KeyLine, KeyNames};
use crate::pages::sign_in::with_cookies;
use crate::password::salt_of;
use crate::response::see_other;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::text;
use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use tributary_domain::access::credential::SignInCredential;
use tributary_domain::access::factor::FactorKind;
use tributary_domain::access::key::KeyKind;
use tributary_domain::access::person::{PASSWORD_CHARS_MIN, User, check_password};
use tributary_domain::access::session::{Session, SignInMethod, session_name};
use tributary_domain::access::single_sign_on::PasswordForm;
use tributary_domain::access::{AnalyticsRead, Environment};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_store::NewSession;

#[derive(Template)]
#[template(path = "account.html")]
struct AccountPage {
    shell: Shell,
    form: FormState,
    password_min: usize,
    password_form: PasswordForm,
    sessions: Vec<SessionLine>,
    factors: Vec<FactorLine>,
    has_app: bool,
    /// Whether browsers can use passkeys on this server.
    offers_passkeys: bool,
    /// Unused recovery codes.
    recovery_codes: u64,
    keys: Vec<KeyLine>,
}

/// A session of the user.
struct SessionLine {
    name: String,
    browser: String,
    network: String,
    signed_in: String,
    last_used: String,
    /// How the session began, if not with a password.
    method: Option<&'static str>,
    is_current: bool,
}

/// Returns the form for the user's password, and the stored hash.
async fn password_form(
    handles: &DashboardHandles,
    user: &User,
) -> Result<(PasswordForm, String), Failure> {
    let account = handles.store.account(user.id).await?;
    let (_, hash) = account.ok_or(Failure::Refused(Refusal::MemberNotFound))?;
    Ok((PasswordForm::of(user.role, &hash), hash))
}

/// Loads the page. `faults` are those of a password that was not changed.
async fn page(
    handles: &DashboardHandles,
    context: &PageContext<AnalyticsRead>,
    faults: Faults,
) -> Result<AccountPage, Failure> {
    let (now, current) = (handles.runtime.now(), context.session.token_digest);
    let line = |(digest, session): (Digest, Session)| SessionLine {
        name: session_name(&digest),
        browser: session.client.browser.unwrap_or_else(|| "–".to_owned()),
        network: session.client.network.unwrap_or_else(|| "–".to_owned()),
        signed_in: text::moment_utc(session.created_at),
        last_used: text::ago(session.last_seen_at, now),
        method: match session.method {
            SignInMethod::Password => None,
            SignInMethod::SingleSignOn => Some("single sign-on"),
            SignInMethod::Passkey => Some("passkey"),
        },
        is_current: digest == current,
    };
    let sessions = valid_sessions(handles, context).await?;
    let factors = handles.store.factors_of(context.session.user.id).await?;
    let codes = handles.store.unused_recovery_codes(context.session.user.id);
    let recovery_codes = codes.await?;
    let own = handles.store.own_keys(&context.authorized, now).await?;
    let names = KeyNames {
        members: std::slice::from_ref(&context.session.user),
        apps: context.apps(),
        me: context.session.user.id,
        now,
    };
    Ok(AccountPage {
        password_form: password_form(handles, &context.session.user).await?.0,
        shell: context.shell(Section::Account),
        // Typed passwords are never sent back.
        form: FormState::default().with_faults(faults),
        password_min: PASSWORD_CHARS_MIN,
        sessions: sessions.into_iter().map(line).collect(),
        offers_passkeys: handles.relying_party.is_some(),
        has_app: factors.iter().any(|one| one.kind() == FactorKind::Totp),
        factors: factors.iter().map(|one| FactorLine::of(one, now)).collect(),
        recovery_codes,
        keys: own.into_iter().map(|key| names.line(key)).collect(),
    })
}

async fn valid_sessions(
    handles: &DashboardHandles,
    context: &PageContext<AnalyticsRead>,
) -> Result<Vec<(Digest, Session)>, Failure> {
    let now = handles.runtime.now();
    let sessions = handles.store.sessions_of(context.session.user.id).await?;
    let is_valid = |(_, session): &(Digest, Session)| session.is_valid(now);
    Ok(sessions.into_iter().filter(is_valid).collect())
}

/// Shows the page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: PageContext<AnalyticsRead>,
) -> Result<Response, Failure> {
    let page = page(&handles, &context, Faults::new()).await?;
    Ok(context.page(&page))
}

/// Ends the session that the form names, or all but the current one.
pub(crate) async fn end_sessions(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AnalyticsRead>,
) -> Result<Response, Failure> {
    let (wanted, current) = (
        submission.form.field("session"),
        submission.session.token_digest,
    );
    let (user, origin) = (submission.session.user.id, submission.origin(&handles));
    if wanted.is_empty() {
        let ended = handles.store.end_other_sessions(user, current, origin);
        ended.await?;
    } else {
        let sessions = valid_sessions(&handles, &submission.context).await?;
        let digests = sessions.into_iter().map(|(digest, _)| digest);
        let ended = digests
            .filter(|digest| *digest != current && session_name(digest) == wanted)
            .collect();
        handles.store.end_sessions_of(user, ended, origin).await?;
    }
    Ok(see_other("/account?notice=sessions"))
}

/// Changes the password.
pub(crate) async fn change_password(
    State(handles): State<DashboardHandles>,
    headers: HeaderMap,
    submission: FormSubmission<AnalyticsRead>,
) -> Result<Response, Failure> {
    let user = &submission.session.user;
    let (form, checked) = password_form(&handles, user).await?;
    if form != PasswordForm::Change {
        return Err(Failure::NotFound);
    }
    let current = submission.form.field("current");
    let fault = match check_own_password(&handles, user, current).await? {
        PasswordCheck::Right => None,
        PasswordCheck::Wrong => Some("This is not your current password.".to_owned()),
        PasswordCheck::Wait(wait) => Some(text::retry_message(wait)),
    };
    replace_password(&handles, &headers, &submission, (checked, fault)).await
}

/// Sets the first password of an owner. There is no current one to ask for, so the form is a sensitive
/// action.
pub(crate) async fn choose_password(
    State(handles): State<DashboardHandles>,
    headers: HeaderMap,
    submission: FormSubmission<AnalyticsRead>,
) -> Result<Response, Failure> {
    let (form, checked) = password_form(&handles, &submission.session.user).await?;
    if form != PasswordForm::ChooseFirst {
        return Err(Failure::NotFound);
    }
    replace_password(&handles, &headers, &submission, (checked, None)).await
}

/// Replaces the password whose hash was checked, ends all sessions, and starts a new one for this
/// browser. `fault` says what is wrong with the current password.
async fn replace_password(
    handles: &DashboardHandles,
    headers: &HeaderMap,
    submission: &FormSubmission<AnalyticsRead>,
    (checked, fault): (String, Option<String>),
) -> Result<Response, Failure> {
    let user = &submission.session.user;
    let bug = |error| {
        tracing::error!(%error, "failed to hash password");
        Failure::Internal
    };
    let new = submission.form.field("password");
    let mut faults = Faults::new();
    if let Some(message) = fault {
        faults.add("current", Problem::new(FaultCode::NotAllowed, message));
    }
    let organization = submission.session.organization.name.as_str().to_owned();
    let strength = check_password(&new, user.email.as_str(), &[organization]);
    faults.check("password", strength);
    if !faults.is_empty() {
        let page = page(handles, &submission.context, faults).await?;
        return Ok(submission.page_with(StatusCode::UNPROCESSABLE_ENTITY, &page));
    }
    // The accounts of an address share their salt; see `password::Hasher::verify`.
    let accounts = handles.store.users_by_email(&user.email).await?;
    let salt = accounts.iter().find_map(|(_, hash)| salt_of(hash));
    let salt = salt.unwrap_or_else(|| handles.runtime.random_bytes());
    let hash = handles.hasher.hash(new, salt).await.map_err(bug)?;
    let token = handles.runtime.new_key(KeyKind::Session, Environment::Live);
    let seen = submission.session.session_client(headers);
    let session = NewSession {
        session: Session {
            // The provider vouches for the new session as for the old one.
            method: submission.session.method,
            ..Session::begin(user.id, handles.runtime.now(), seen)
        },
        digest: token.digest(),
        credential: SignInCredential::Password {
            hash: checked,
            // The first factor ends the sessions that began before it, except the one that added it.
            has_second_step: submission.session.factors.is_set_up,
        },
    };
    let origin = submission.origin(handles);
    // Before the change, which ends the session: a failure afterwards would sign the user out.
    count_new_password(handles, &user.email).await?;
    handles.store.change_password(session, hash, origin).await?;
    let cookie = cookie::set(handles, &token);
    let changed = see_other("/account?notice=password");
    Ok(with_cookies(changed, [cookie]))
}
