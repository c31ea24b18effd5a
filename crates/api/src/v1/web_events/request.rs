//! Turns a request into a web event, once the app's settings admit it.

use super::fields::WebEventRequest;
use crate::error::ApiError;
use crate::path::PathIds;
use crate::state::ApiState;
use tributary_domain::access::{AppsRead, Authorized};
use tributary_domain::event::web::WebEvent;
use tributary_domain::vocabulary::id::{AppId, EventId};

/// Finds the app, checks that it accepts web events, and verifies the click's signature.
pub(super) async fn read_event(
    state: &ApiState,
    caller: Authorized<AppsRead>,
    ids: PathIds,
    request: WebEventRequest,
) -> Result<WebEvent, ApiError> {
    let app = state
        .read_cache
        .app(&state.store, caller, ids.app()?)
        .await?;
    app.admit_web_events()?;
    Ok(into_web_event(request, app.id, state))
}

fn into_web_event(request: WebEventRequest, app: AppId, state: &ApiState) -> WebEvent {
    let click = state
        .click_tokens
        .verify(&request.click_text)
        .filter(|click| click.belongs_to(app))
        .map(|click| click.click);
    WebEvent {
        app,
        id: EventId::new(request.occurred_at, state.runtime.id_bytes()),
        external_id: request.external_id,
        click_text: request.click_text,
        click,
        device: request.device,
        occurred_at: request.occurred_at,
        kind: request.kind,
        amount: request.amount,
        currency: request.currency,
        origin: request.source_url.origin(),
        source_url: request.source_url.as_str().to_owned(),
        parent: request.parent,
        email_sha256: request.email_sha256,
        received_at: request.received_at,
    }
}
