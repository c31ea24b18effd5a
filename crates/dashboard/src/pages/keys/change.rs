//! Changes to API keys.

use super::{EXPIRIES, KeysPage, OVERLAPS};
use crate::access::FormSubmission;
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::response::see_other;
use crate::state::DashboardHandles;
use crate::text;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use std::time::Duration;
use tributary_domain::access::key::KeyKind;
use tributary_domain::access::key_management::{KEY_OVERLAP_HOURS_DEFAULT, KeyRotation};
use tributary_domain::access::{AppsRead, Environment, KeysWrite};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::fault::Faults;
use tributary_domain::vocabulary::id::KeyId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_fields::{Form, key};
use tributary_store::{NewKey, StoreError};

/// Returns when a key ends that lives for the chosen number of days.
fn end_after(days: &str, now: Timestamp) -> Option<Timestamp> {
    let days = EXPIRIES.into_iter().find(|one| one.to_string() == days)?;
    Some(now.plus(Duration::from_hours(24 * days)))
}

/// Converts the form to the fields of the REST API: a checkbox per app to a list, and the lifetime
/// to a time.
fn api_form(form: &Form, now: Timestamp) -> Form {
    let ticked = form
        .fields()
        .filter_map(|(name, _)| name.strip_prefix("app."));
    let apps: Vec<&str> = ticked.collect();
    let expires_at = end_after(&form.field("expires"), now).map(text::rfc3339);
    let direct = ["name", "permission", "environment", "addresses"];
    let direct = direct.map(|name| (name.to_owned(), form.field(name)));
    let derived = [
        ("apps".to_owned(), apps.join(",")),
        ("expiresAt".to_owned(), expires_at.unwrap_or_default()),
    ];
    Form::of(direct.into_iter().chain(derived).collect())
}

/// `POST /keys` — creates a key and shows it once.
pub(crate) async fn create(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<KeysWrite>,
) -> Result<Response, Failure> {
    let (draft, faults) = api_form(&submission.form, handles.runtime.now()).read(key::read);
    let Some(draft) = draft.filter(|_| faults.is_empty()) else {
        return faulty(&handles, &submission, faults).await;
    };
    let organization = submission.authorized.organization();
    let (key, token) = handles.runtime.drafted_key(organization, draft);
    let digest = token.digest();
    let origin = submission.origin(&handles);
    match handles
        .store
        .create_key(NewKey { key, digest }, origin)
        .await
    {
        Ok(_) => {}
        Err(StoreError::Refused(Refusal::Invalid(faults) | Refusal::KeyExceedsManager(faults))) => {
            return faulty(&handles, &submission, faults).await;
        }
        Err(error) => return Err(error.into()),
    }
    let shown = Some(token.reveal().to_owned());
    let page = KeysPage::load(&handles, &submission.context, FormState::default(), shown).await?;
    Ok(submission.page(&page))
}

async fn faulty(
    handles: &DashboardHandles,
    submission: &FormSubmission<KeysWrite>,
    faults: Faults,
) -> Result<Response, Failure> {
    let form = FormState::from_form(&submission.form).with_faults(faults);
    let page = KeysPage::load(handles, &submission.context, form, None).await?;
    Ok(submission.page_with(StatusCode::UNPROCESSABLE_ENTITY, &page))
}

fn key_id(submission: &FormSubmission<KeysWrite>) -> Result<KeyId, Failure> {
    KeyId::parse(submission.path_parameter("key")).map_err(|_| Failure::NotFound)
}

/// `POST /keys/{key}/rotate` — replaces a key and shows its successor once.
pub(crate) async fn rotate(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<KeysWrite>,
) -> Result<Response, Failure> {
    let reader = submission
        .session
        .authorize::<AppsRead>(Environment::Live)?;
    let old = handles.store.key(&reader, key_id(&submission)?).await?;
    let (now, form) = (handles.runtime.now(), &submission.form);
    let hours = form.field("overlap");
    let overlap = OVERLAPS
        .into_iter()
        .find(|(one, _)| one.to_string() == hours);
    let hours = overlap.map_or(KEY_OVERLAP_HOURS_DEFAULT, |(hours, _)| hours);
    let expires = form.field("expires");
    let expiry = match end_after(&expires, now) {
        Some(end) => Change::Set(end),
        None if expires == "never" => Change::Reset,
        None => Change::Keep,
    };
    let token = handles.runtime.new_key(KeyKind::Private, old.environment);
    let rotation = KeyRotation {
        successor: KeyId::new(now, handles.runtime.random_bytes()),
        hint: token.hint().to_owned(),
        overlap: Duration::from_hours(u64::from(hours)),
        expiry,
    };
    let (digest, origin) = (token.digest(), submission.origin(&handles));
    let rotated =
        handles
            .store
            .rotate_key(&submission.authorized, old.id, rotation, digest, origin);
    rotated.await?;
    let shown = Some(token.reveal().to_owned());
    let page = KeysPage::load(&handles, &submission.context, FormState::default(), shown).await?;
    Ok(submission.page(&page))
}

/// `POST /keys/{key}/take-over` — makes the user the owner of a key.
pub(crate) async fn take_over(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<KeysWrite>,
) -> Result<Response, Failure> {
    let (key, origin) = (key_id(&submission)?, submission.origin(&handles));
    let taken = handles
        .store
        .take_over_key(&submission.authorized, key, origin);
    taken.await?;
    Ok(see_other("/keys?notice=taken-over"))
}

/// `POST /keys/{key}/revoke` — revokes a key.
pub(crate) async fn revoke(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<KeysWrite>,
) -> Result<Response, Failure> {
    let (key, origin) = (key_id(&submission)?, submission.origin(&handles));
    let revoked = handles
        .store
        .revoke_managed_key(&submission.authorized, key, origin);
    revoked.await?;
    Ok(see_other("/keys?notice=revoked"))
}
