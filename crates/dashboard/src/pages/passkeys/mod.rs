//! `/passkey/challenge` issues challenges, `/account/passkeys` adds a passkey, and `/sign-in/passkey` signs
//! in with one.

mod sign_in;

pub(crate) use sign_in::sign_in;

use super::factors::{codes_page, new_codes};
use crate::access::passkey::{PasskeyOffer, check_new_passkey, set_challenge, user_handle};
use crate::access::{FormSubmission, PageContext};
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::pages::sign_in::with_cookies;
use crate::response::see_other;
use crate::same_origin::SameOrigin;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tributary_domain::access::AnalyticsRead;
use tributary_domain::access::factor::passkey::{Passkey, PasskeyChallenge};
use tributary_domain::access::factor::{Factor, FactorVerifier};
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_domain::vocabulary::id::{FactorId, UserId};
use tributary_domain::vocabulary::text::Name;

/// Name of a new passkey, until the user gives it another one.
const PASSKEY_NAME: &str = "Passkey";

#[derive(Template)]
#[template(path = "passkey_new.html")]
struct NewPasskeyPage {
    shell: Shell,
    form: FormState,
    /// `None` if browsers cannot use passkeys on this server.
    offer: Option<PasskeyOffer>,
    /// The user whom the device stores.
    user: String,
    /// Whether the organization requires a factor, and the user has none.
    is_demanded: bool,
}

/// Issues a challenge for the script. It changes nothing, so anybody may ask for one.
pub(crate) async fn challenge(
    _: SameOrigin,
    State(handles): State<DashboardHandles>,
) -> Result<Response, Failure> {
    if handles.relying_party.is_none() {
        return Err(Failure::NotFound);
    }
    let now = handles.runtime.now();
    let challenge = PasskeyChallenge::new(handles.runtime.random_bytes(), now);
    let body = serde_json::json!({
        "challenge": challenge.text(),
        "user": user_handle(challenge.new_user()),
    });
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "no-store"),
    ]
    .map(|(name, value)| (name, HeaderValue::from_static(value)));
    let answer = (headers, body.to_string()).into_response();
    Ok(with_cookies(answer, [set_challenge(&handles, &challenge)]))
}

async fn page(
    handles: &DashboardHandles,
    context: &PageContext<AnalyticsRead>,
    form: FormState,
) -> Result<NewPasskeyPage, Failure> {
    let session = &context.session;
    let factors = handles.store.factors_of(session.user.id).await?;
    Ok(NewPasskeyPage {
        shell: context.shell(Section::Account),
        form,
        offer: PasskeyOffer::of(handles, &factors),
        user: user_handle(session.user.id),
        is_demanded: session.factors.must_set_up(session.method),
    })
}

/// Shows the form.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: PageContext<AnalyticsRead>,
) -> Result<Response, Failure> {
    let form = FormState::default().with("name", PASSKEY_NAME);
    Ok(context.page(&page(&handles, &context, form).await?))
}

/// Returns the factor for a new passkey.
pub(crate) fn new_factor(
    handles: &DashboardHandles,
    user: UserId,
    name: Name,
    passkey: Passkey,
) -> Factor {
    let now = handles.runtime.now();
    Factor {
        id: FactorId::new(now, handles.runtime.random_bytes()),
        user,
        name,
        created_at: now,
        last_used_at: None,
        verifier: FactorVerifier::Passkey(passkey),
    }
}

/// Returns the factor of an account that is set up with a passkey.
pub(crate) fn first_factor(handles: &DashboardHandles, user: UserId, passkey: Passkey) -> Factor {
    let name = Name::parse(PASSKEY_NAME).expect("the constant is a name");
    new_factor(handles, user, name, passkey)
}

/// Stores the passkey that the browser created.
pub(crate) async fn add(
    State(handles): State<DashboardHandles>,
    headers: HeaderMap,
    submission: FormSubmission<AnalyticsRead>,
) -> Result<Response, Failure> {
    let (form, user) = (&submission.form, submission.session.user.id);
    let mut faults = Faults::new();
    let name = faults.check("name", Name::parse(&form.field("name")));
    let checked = check_new_passkey(&handles, form, &headers);
    if let Err(fault) = &checked {
        let problem = Problem::new(FaultCode::NotAllowed, fault.to_string());
        faults.add("passkey", problem);
    }
    let (Some(name), Ok((passkey, _))) = (name, checked) else {
        let form = FormState::default()
            .with("name", form.field("name"))
            .with_faults(faults);
        let page = page(&handles, &submission.context, form).await?;
        return Ok(submission.page_with(StatusCode::UNPROCESSABLE_ENTITY, &page));
    };
    let factor = new_factor(&handles, user, name, passkey);
    let codes = new_codes(&handles);
    let digests = codes.iter().map(|code| code.digest(user)).collect();
    let (own, origin) = (submission.session.token_digest, submission.origin(&handles));
    let added = handles.store.add_factor(factor, own, digests, origin);
    Ok(if added.await? {
        codes_page(&submission, &codes, true)
    } else {
        see_other("/account?notice=saved")
    })
}
