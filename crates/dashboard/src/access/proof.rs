//! Asks for a proof of who the user is before a sensitive action, and then continues the action.
//!
//! The page that asks contains the submitted form encrypted, so nothing typed is lost, and no secret is
//! sent back.

use super::guess::{PasswordCheck, check_own_password};
use super::passkey::{PasskeyOffer, check_own_passkey, has_passkey};
use super::second_step::{CodeCheck, check_own_code};
use super::{CurrentSession, PageContext, audit_failure};
use crate::failure::Failure;
use crate::pages::notices::recipients_text;
use crate::pages::single_sign_on::sign_in_path;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use askama::Template;
use axum::extract::{FromRequestParts, MatchedPath};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use std::time::Duration;
use tributary_domain::access::factor::{FactorKind, may_open};
use tributary_domain::access::proof::{
    PROOF_LIFETIME, SensitiveAction, StoredField, is_recent_proof,
};
use tributary_domain::access::session::SignInMethod;
use tributary_domain::access::single_sign_on::has_password;
use tributary_domain::access::{AppsRead, Environment};
use tributary_domain::vocabulary::id::NoticeId;
use tributary_fields::Form;
use tributary_store::StoreError;
use url::form_urlencoded::{Serializer, byte_serialize};

/// Field with the encrypted form that continues.
const CONTINUED_FORM: &str = "proof.form";
/// Field with the page that continues.
const NEXT: &str = "next";
/// Field with the password.
const PASSWORD: &str = "proof.password";
/// Field with the code of an authenticator app.
const CODE: &str = "proof.code";
/// Target of the form that asks before a page.
const CONFIRM: &str = "/account/confirm";

#[derive(Template)]
#[template(path = "confirm.html")]
struct ConfirmPage {
    shell: Shell,
    purpose: &'static str,
    target: String,
    /// Name and value of the field with what continues.
    continued: (&'static str, String),
    fault: Option<String>,
    minutes: u64,
    /// Whether the user has a password.
    has_password: bool,
    /// Whether a code of an authenticator app is a proof as well.
    takes_code: bool,
    /// How to use a passkey instead.
    passkey: Option<PasskeyOffer>,
    /// Sign-in page of the organization's provider, if the session began there. A new sign-in is a
    /// proof as well.
    provider: Option<String>,
}

/// Result of a proof that was typed.
pub(crate) enum ProofOutcome {
    /// It is right and recorded.
    Right,
    /// It is wrong.
    Wrong,
    /// It was not checked. The user has to wait.
    Wait(Duration),
}

impl ProofOutcome {
    const fn of(check: CodeCheck) -> Self {
        match check {
            CodeCheck::Wait(wait) => Self::Wait(wait),
            CodeCheck::Wrong => Self::Wrong,
            CodeCheck::Right => Self::Right,
        }
    }

    fn fault(&self) -> Option<String> {
        match self {
            Self::Right => None,
            Self::Wrong => Some(
                "This is not your password, not the current code of your app, or not your passkey."
                    .to_owned(),
            ),
            Self::Wait(wait) => Some(crate::text::retry_message(*wait)),
        }
    }

    const fn status(&self) -> StatusCode {
        match self {
            Self::Right => StatusCode::OK,
            Self::Wrong => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Wait(_) => StatusCode::TOO_MANY_REQUESTS,
        }
    }
}

/// Checks the proof in a form and records it.
async fn check(
    session: &CurrentSession,
    form: &Form,
    headers: &HeaderMap,
    handles: &DashboardHandles,
) -> Result<ProofOutcome, Failure> {
    let (user, code) = (&session.user, form.field(CODE));
    let outcome = if has_passkey(form) {
        let checked = check_own_passkey(handles, user.id, form, headers);
        ProofOutcome::of(checked.await?)
    } else if code.is_empty() {
        match check_own_password(handles, user, form.field(PASSWORD)).await? {
            PasswordCheck::Wait(wait) => ProofOutcome::Wait(wait),
            PasswordCheck::Wrong => ProofOutcome::Wrong,
            PasswordCheck::Right => ProofOutcome::Right,
        }
    } else {
        ProofOutcome::of(check_own_code(handles, user, &code).await?)
    };
    if matches!(outcome, ProofOutcome::Wrong) {
        audit_failure(handles, vec![user.clone()], session.client());
    }
    if !matches!(outcome, ProofOutcome::Right) {
        return Ok(outcome);
    }
    let now = handles.runtime.now();
    let noted = handles.store.note_session_proof(session.token_digest, now);
    noted.await?;
    Ok(ProofOutcome::Right)
}

/// Renders the page that asks. `outcome` is that of an earlier answer.
async fn ask<S>(
    (context, handles): (&PageContext<S>, &DashboardHandles),
    purpose: &'static str,
    target: String,
    continued: (&'static str, String),
    outcome: Option<&ProofOutcome>,
) -> Result<Response, Failure> {
    let status = outcome.map_or(StatusCode::FORBIDDEN, ProofOutcome::status);
    let session = &context.session;
    let is_page = continued.0 == NEXT;
    let next = if is_page { &continued.1 } else { "/home" };
    let next: String = byte_serialize(next.as_bytes()).collect();
    let provider = sign_in_path(session.organization.id);
    let is_provided = session.method == SignInMethod::SingleSignOn;
    let account = handles.store.account(session.user.id).await?;
    let factors = handles.store.factors_of(session.user.id).await?;
    let page = ConfirmPage {
        provider: is_provided.then(|| format!("{provider}?next={next}")),
        shell: context.shell(Section::Unlisted),
        purpose,
        target,
        continued,
        fault: outcome.and_then(ProofOutcome::fault),
        minutes: PROOF_LIFETIME.as_secs() / 60,
        has_password: account.is_none_or(|(_, hash)| has_password(&hash)),
        takes_code: factors.iter().any(|one| one.kind() == FactorKind::Totp),
        passkey: PasskeyOffer::of_user(handles, &factors),
    };
    Ok(context.page_with(status, &page))
}

/// Returns the sensitive action of a request; `None` if it needs no proof.
async fn action_of<S>(
    context: &PageContext<S>,
    parts: &mut Parts,
    form: Option<&Form>,
    handles: &DashboardHandles,
) -> Result<Option<&'static SensitiveAction>, Failure> {
    let matched = MatchedPath::from_request_parts(parts, handles).await.ok();
    let path = matched.as_ref().map_or("", MatchedPath::as_str);
    let Some(action) = SensitiveAction::at(form.is_none(), path) else {
        return Ok(None);
    };
    let stored = match action.stored_field() {
        Some(field) => stored_value(context, field, handles).await?,
        None => String::new(),
    };
    let fields = form.into_iter().flat_map(Form::fields);
    Ok(action.includes(fields, &stored).then_some(action))
}

/// Returns what is stored in a field. What does not exist, or may not be read, has no value.
async fn stored_value<S>(
    context: &PageContext<S>,
    field: StoredField,
    handles: &DashboardHandles,
) -> Result<String, Failure> {
    let caller = context.session.authorize::<AppsRead>(Environment::Live);
    let (Ok(caller), Ok(app)) = (caller, context.app()) else {
        return Ok(String::new());
    };
    let found = match field {
        StoredField::AlertWebhookUrl => {
            let app = handles.store.app(&caller, app.id).await;
            app.map(|app| app.alert_webhook_url.map(|url| url.as_str().to_owned()))
        }
        StoredField::Recipients => {
            let Ok(id) = NoticeId::parse(context.path_parameter("notice")) else {
                return Ok(String::new());
            };
            let notice = handles.store.notice(&caller, app.id, id).await;
            notice.map(|notice| Some(recipients_text(&notice)))
        }
    };
    match found {
        Ok(value) => Ok(value.unwrap_or_default()),
        Err(StoreError::Refused(_)) => Ok(String::new()),
        Err(error) => Err(error.into()),
    }
}

/// Leads a user to the set-up page who needs a second factor and has none.
pub(super) async fn lead_to_factor(
    session: &CurrentSession,
    parts: &mut Parts,
    handles: &DashboardHandles,
) -> Result<(), Failure> {
    if !session.factors.must_set_up(session.method) {
        return Ok(());
    }
    let matched = MatchedPath::from_request_parts(parts, handles).await.ok();
    let path = matched.as_ref().map_or("", MatchedPath::as_str);
    if may_open(session.factors, session.method, path) {
        Ok(())
    } else {
        Err(Failure::FactorMissing)
    }
}

/// Asks before a sensitive page if the last proof is too old.
pub(super) async fn require_for_page<S>(
    context: &PageContext<S>,
    parts: &mut Parts,
    handles: &DashboardHandles,
) -> Result<(), Failure> {
    let is_recent = is_recent_proof(context.session.proved_at, handles.runtime.now());
    if is_recent || !parts.method.is_safe() {
        return Ok(());
    }
    let Some(action) = action_of(context, parts, None, handles).await? else {
        return Ok(());
    };
    let (target, next) = (CONFIRM.to_owned(), (NEXT, context.target()));
    let page = ask((context, handles), action.purpose, target, next, None).await?;
    Err(Failure::ProofNeeded(Box::new(page)))
}

/// Returns the form that was submitted, or the one that a proof continues. Asks if the form is
/// sensitive and the last proof is too old.
pub(super) async fn require_for_form<S>(
    context: &PageContext<S>,
    form: Form,
    parts: &mut Parts,
    handles: &DashboardHandles,
) -> Result<Form, Failure> {
    let (session, target) = (&context.session, context.target());
    let sealed = form.field(CONTINUED_FORM);
    let (form, proof) = if sealed.is_empty() {
        (form, None)
    } else {
        let opened = handles
            .keyring
            .open_form(session.token_digest, &target, &sealed);
        let opened = opened.and_then(|body| Form::parse(&body));
        (opened.ok_or(Failure::FormExpired)?, Some(form))
    };
    if is_recent_proof(session.proved_at, handles.runtime.now()) {
        return Ok(form);
    }
    let Some(action) = action_of(context, parts, Some(&form), handles).await? else {
        return Ok(form);
    };
    let outcome = match proof {
        Some(proof) => Some(check(session, &proof, &parts.headers, handles).await?),
        None => None,
    };
    if matches!(outcome, Some(ProofOutcome::Right)) {
        return Ok(form);
    }
    let body = Serializer::new(String::new())
        .extend_pairs(form.fields())
        .finish();
    let nonce = handles.runtime.random_bytes();
    let keyring = &handles.keyring;
    let sealed = keyring.seal_form(session.token_digest, &target, nonce, &body);
    let continued = (CONTINUED_FORM, sealed);
    let (purpose, outcome) = (action.purpose, outcome.as_ref());
    let page = ask((context, handles), purpose, target, continued, outcome).await?;
    Err(Failure::ProofNeeded(Box::new(page)))
}

/// Checks the answer to [`require_for_page`]. Returns the page that asks again if it is wrong.
pub(crate) async fn confirm_page<S>(
    context: &PageContext<S>,
    form: &Form,
    headers: &HeaderMap,
    handles: &DashboardHandles,
) -> Result<Option<Response>, Failure> {
    let outcome = check(&context.session, form, headers, handles).await?;
    if matches!(outcome, ProofOutcome::Right) {
        return Ok(None);
    }
    let next = (NEXT, form.field(NEXT));
    let target = CONFIRM.to_owned();
    let purpose = "open this page";
    let page = ask((context, handles), purpose, target, next, Some(&outcome)).await?;
    Ok(Some(page))
}
