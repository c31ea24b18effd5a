//! `/account/authenticator`, `/account/recovery-codes` and `/account/factors` — sets up, lists and
//! removes second factors.

use crate::access::{FormSubmission, PageContext};
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::response::see_other;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::text;
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tributary_domain::access::AnalyticsRead;
use tributary_domain::access::factor::recovery::{RECOVERY_CODES, RecoveryCode};
use tributary_domain::access::factor::totp::TotpSecret;
use tributary_domain::access::factor::{Factor, FactorVerifier, secret_scope};
use tributary_domain::link::qr::QrCode;
use tributary_domain::vocabulary::digest::{from_hex, hex};
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_domain::vocabulary::id::FactorId;
use tributary_domain::vocabulary::text::Name;
use tributary_domain::vocabulary::time::Timestamp;

/// Scope of the sealed secret in the form.
const SETUP: &str = "/account/authenticator#secret";
/// Name of a new app, until the user gives it another one.
const APP_NAME: &str = "Authenticator app";
/// Pixels of a module of the QR code: large enough for every camera.
const QR_SCALE: i32 = 5;

#[derive(Template)]
#[template(path = "authenticator.html")]
struct AuthenticatorPage {
    shell: Shell,
    form: FormState,
    qr: Option<QrCode>,
    secret: String,
    /// The sealed secret, which comes back with the code.
    sealed: String,
    /// Whether the organization requires a factor, and the user has none.
    is_demanded: bool,
}

impl AuthenticatorPage {
    fn new(
        handles: &DashboardHandles,
        context: &PageContext<AnalyticsRead>,
        secret: &TotpSecret,
        form: FormState,
    ) -> Self {
        let session = &context.session;
        let issuer = format!("Tributary ({})", session.organization.name.as_str());
        let uri = secret.uri(&issuer, session.user.email.as_str());
        let (nonce, text) = (handles.runtime.random_bytes(), hex(secret.as_bytes()));
        let keyring = &handles.keyring;
        Self {
            shell: context.shell(Section::Account),
            form,
            qr: QrCode::of(&uri),
            secret: secret.text(),
            sealed: keyring.seal_form(session.token_digest, SETUP, nonce, &text),
            is_demanded: session.factors.must_set_up(session.method),
        }
    }

    fn qr_pixels(&self) -> i32 {
        self.qr.as_ref().map_or(0, |qr| qr.side() * QR_SCALE)
    }
}

#[derive(Template)]
#[template(path = "recovery_codes.html")]
struct RecoveryCodesPage {
    shell: Shell,
    codes: Vec<String>,
    /// Whether they come with the first factor, which ended the user's other sessions.
    is_first_factor: bool,
}

/// A factor on the account page.
pub(crate) struct FactorLine {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) created: String,
    pub(crate) last_used: String,
}

impl FactorLine {
    pub(crate) fn of(factor: &Factor, now: Timestamp) -> Self {
        Self {
            id: factor.id.to_string(),
            name: factor.name.as_str().to_owned(),
            kind: match factor.passkey() {
                None => "Authenticator app",
                Some(passkey) if passkey.is_synced => "Passkey, synced",
                Some(_) => "Passkey on one device",
            },
            created: text::moment_utc(factor.created_at),
            last_used: factor
                .last_used_at
                .map_or_else(|| "never".to_owned(), |at| text::ago(at, now)),
        }
    }
}

pub(crate) fn new_codes(handles: &DashboardHandles) -> Vec<RecoveryCode> {
    let code = |_| RecoveryCode::new(handles.runtime.random_bytes());
    (0..RECOVERY_CODES).map(code).collect()
}

pub(crate) fn codes_page(
    submission: &FormSubmission<AnalyticsRead>,
    codes: &[RecoveryCode],
    is_first_factor: bool,
) -> Response {
    let page = RecoveryCodesPage {
        shell: submission.shell(Section::Account),
        codes: codes.iter().map(RecoveryCode::reveal).collect(),
        is_first_factor,
    };
    submission.page(&page)
}

/// Shows a new secret.
pub(crate) async fn show_authenticator(
    State(handles): State<DashboardHandles>,
    context: PageContext<AnalyticsRead>,
) -> Response {
    let secret = TotpSecret::new(handles.runtime.random_bytes());
    let form = FormState::default().with("name", APP_NAME);
    context.page(&AuthenticatorPage::new(&handles, &context, &secret, form))
}

/// Stores the authenticator app if it shows the right code.
pub(crate) async fn add_authenticator(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AnalyticsRead>,
) -> Result<Response, Failure> {
    let (form, session) = (&submission.form, &submission.session);
    let sealed = form.field("setup");
    let opened = handles
        .keyring
        .open_form(session.token_digest, SETUP, &sealed);
    let text = opened.and_then(|bytes| String::from_utf8(bytes).ok());
    let secret = text.and_then(|text| TotpSecret::from_slice(&from_hex(&text)?));
    let secret = secret.ok_or(Failure::FormExpired)?;
    let now = handles.runtime.now();
    let mut faults = Faults::new();
    let name = faults.check("name", Name::parse(&form.field("name")));
    let step = secret.accepted_step(&form.field("code"), now, None);
    if step.is_none() {
        let message = "This is not the code that the app shows now. Check the clock of your phone.";
        faults.add("code", Problem::new(FaultCode::NotAllowed, message));
    }
    let (Some(name), Some(step)) = (name, step) else {
        let form = FormState::default()
            .with("name", form.field("name"))
            .with_faults(faults);
        let page = AuthenticatorPage::new(&handles, &submission.context, &secret, form);
        return Ok(submission.page_with(StatusCode::UNPROCESSABLE_ENTITY, &page));
    };
    let user = &session.user;
    let id = FactorId::new(now, handles.runtime.random_bytes());
    let scope = secret_scope(user.organization, user.id, id);
    let scope = scope.each_ref().map(String::as_str);
    let nonce = handles.runtime.random_bytes();
    let sealed = handles.keyring.seal(&scope, nonce, secret.as_bytes());
    let factor = Factor {
        id,
        user: user.id,
        name,
        created_at: now,
        last_used_at: None,
        verifier: FactorVerifier::Totp {
            sealed,
            last_step: Some(step),
        },
    };
    let codes = new_codes(&handles);
    let digests = codes.iter().map(|code| code.digest(user.id)).collect();
    let (own, origin) = (session.token_digest, submission.origin(&handles));
    let added = handles.store.add_factor(factor, own, digests, origin);
    Ok(if added.await? {
        codes_page(&submission, &codes, true)
    } else {
        see_other("/account?notice=saved")
    })
}

/// Replaces the recovery codes and shows the new ones once.
pub(crate) async fn replace_codes(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AnalyticsRead>,
) -> Result<Response, Failure> {
    let (user, origin) = (submission.session.user.id, submission.origin(&handles));
    let codes = new_codes(&handles);
    let digests = codes.iter().map(|code| code.digest(user)).collect();
    let replaced = handles.store.replace_recovery_codes(user, digests, origin);
    replaced.await?;
    Ok(codes_page(&submission, &codes, false))
}

/// Removes a factor.
pub(crate) async fn remove(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AnalyticsRead>,
) -> Result<Response, Failure> {
    let factor = FactorId::parse(submission.path_parameter("factor"));
    let factor = factor.map_err(|_| Failure::NotFound)?;
    let (user, origin) = (submission.session.user.id, submission.origin(&handles));
    handles.store.remove_factor(user, factor, origin).await?;
    Ok(see_other("/account?notice=removed"))
}
