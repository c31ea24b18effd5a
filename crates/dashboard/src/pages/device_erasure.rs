//! `POST /apps/{app}/devices/{device}/erase` — erases a device's personal data.

use crate::access::FormSubmission;
use crate::failure::Failure;
use crate::response::see_other;
use crate::state::DashboardHandles;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::PeopleErase;
use tributary_domain::device::DeviceKey;
use tributary_domain::erasure::pseudonym;

/// Erases the device and shows the event log.
pub(crate) async fn erase(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<PeopleErase>,
) -> Result<Response, Failure> {
    let (app, origin) = (submission.app()?.id, submission.origin(&handles));
    let device = DeviceKey::parse(submission.path_parameter("device"));
    let device = device.map_err(|_| Failure::NotFound)?;
    let name = pseudonym(handles.runtime.random_bytes());
    let caller = &submission.authorized;
    let erased = handles
        .store
        .erase_device(caller, app, device, name, origin);
    erased.await?;
    let query = submission.query.with(&[("notice", Some("erased"))]);
    Ok(see_other(&format!("/apps/{app}/events?{query}")))
}
