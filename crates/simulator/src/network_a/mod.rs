//! `network_a`: Meta Conversions API, `POST /{version}/{pixel id}/events`.

mod check;
mod encoding;
mod event;
mod responses;
mod user_data;

use crate::clock::{DAY, HOUR};
use crate::ledger::{AcceptedEvent, Dedup};
use crate::network::{Endpoint, SimulatedNetwork};
use crate::registry::is_valid_credential;
use crate::reply::SimulatedOutcome;
use crate::request_pipeline::{self, EndpointHandler, ReceivedRequest, RequestRoute};
use crate::state::{SimulatorState, State, hex};
use axum::extract::{Path, Request, State as Shared};
use axum::response::Response;
use check::CheckedMetaRequest;
use encoding::Submission;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;
use std::sync::Arc;

/// Deduplication window. App installs have a longer window.
const WINDOW: i64 = 48 * HOUR;
const INSTALL_NAME: &str = "MobileAppInstall";
const INSTALL_WINDOW: i64 = 90 * DAY;
/// First supported version. Calls to older, retired versions are upgraded automatically, with a
/// warning header.
const FIRST_VERSION: u32 = 21;

const HANDLER: EndpointHandler = EndpointHandler {
    account_of: |_| None,
    process,
    expired: |world| responses::bad_token(world),
};

pub(crate) async fn events(
    Shared(world): Shared<Arc<SimulatorState>>,
    Path((_, pixel)): Path<(String, String)>,
    request: Request,
) -> Response {
    let route = RequestRoute {
        network: SimulatedNetwork::NetworkA,
        endpoint: Endpoint::Events,
        account: Some(pixel),
    };
    request_pipeline::handle(&world, route, &HANDLER, request).await
}

/// Handles `/{pixel id}/events`: calls without a version fail.
pub(crate) async fn without_version(
    Shared(world): Shared<Arc<SimulatorState>>,
    Path(pixel): Path<String>,
    request: Request,
) -> Response {
    let route = RequestRoute {
        network: SimulatedNetwork::NetworkA,
        endpoint: Endpoint::Events,
        account: Some(pixel),
    };
    let handler = EndpointHandler {
        process: |world, _| responses::no_version(world),
        ..HANDLER
    };
    request_pipeline::handle(&world, route, &handler, request).await
}

fn process(world: &SimulatorState, received: &mut ReceivedRequest) -> SimulatedOutcome {
    let Some(version) = version(received.parts.uri.path()) else {
        return responses::no_version(world);
    };
    let submission = match encoding::read(received) {
        Ok(submission) => submission,
        Err(message) => return responses::unreadable(world, message),
    };
    let pixel = received.route.account.clone().unwrap_or_default();
    let usage = {
        let mut state = world.state();
        match admit(world, &mut state, &pixel, received, &submission) {
            Ok(usage) => usage,
            Err(refused) => return refused,
        }
    };
    let outcome = accept_events(world, &pixel, received.now, submission);
    let outcome = responses::with_usage(outcome, &pixel, usage);
    if version < FIRST_VERSION {
        return responses::with_version_warning(outcome);
    }
    outcome
}

/// Returns the major version in `/v26.0/…`.
fn version(path: &str) -> Option<u32> {
    let (major, minor) = path.split('/').nth(1)?.strip_prefix('v')?.split_once('.')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit());
    (is_number(major) && is_number(minor)).then(|| major.parse().ok())?
}

/// Reported usage in percent, and minutes until access is regained.
#[derive(Debug, Clone, Copy)]
struct Usage {
    percent: u32,
    regain_minutes: u32,
}

/// Checks token, pixel, proof and rate, in the Graph API's order.
fn admit(
    world: &SimulatorState,
    state: &mut State,
    pixel: &str,
    received: &ReceivedRequest,
    submission: &Submission,
) -> Result<Usage, SimulatedOutcome> {
    let token = submission
        .field("access_token")
        .or_else(|| received.query("access_token"))
        .or_else(|| received.bearer().map(str::to_owned))
        .ok_or_else(|| responses::no_token(world))?;
    let registered = state.registry.a.get(pixel);
    let expected = registered.and_then(|one| one.access_token.as_deref());
    if !is_valid_credential(&token, expected) {
        return Err(responses::bad_token(world));
    }
    let is_id = !pixel.is_empty() && pixel.bytes().all(|byte| byte.is_ascii_digit());
    if !is_id || (registered.is_none() && !world.options.open) {
        return Err(responses::unknown_pixel(world, pixel));
    }
    let proof = submission
        .field("appsecret_proof")
        .or_else(|| received.query("appsecret_proof"));
    let secret = registered.and_then(|one| one.app_secret.as_deref());
    if !is_proof(&token, secret, proof.as_deref()) {
        return Err(responses::bad_proof(world, proof.is_some()));
    }
    let percent =
        state
            .registry
            .rate_usage_percent(SimulatedNetwork::NetworkA, pixel, received.now);
    let on_demand = state.faults.usage(pixel);
    let (percent, regain_minutes) = on_demand.unwrap_or((percent, 0));
    let usage = Usage {
        percent,
        regain_minutes,
    };
    if on_demand.is_none() && percent > 100 {
        return Err(responses::throttled(world, pixel));
    }
    Ok(usage)
}

fn is_proof(token: &str, secret: Option<&str>, proof: Option<&str>) -> bool {
    let Some(secret) = secret else {
        // Without a known secret, only the format can be checked.
        return proof.is_none_or(|proof| {
            proof.len() == 64 && proof.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
    };
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else {
        return false;
    };
    mac.update(token.as_bytes());
    proof == Some(hex(&mac.finalize().into_bytes()).as_str())
}

/// Accepts all events or none.
fn accept_events(
    world: &SimulatorState,
    pixel: &str,
    now: i64,
    submission: Submission,
) -> SimulatedOutcome {
    let (poisons, is_app_linked) = {
        let state = world.state();
        let linked = state.registry.a.get(pixel).and_then(|one| one.app_linked);
        let poisons = state.faults.poisons(SimulatedNetwork::NetworkA, pixel);
        (poisons, linked.unwrap_or(true))
    };
    let rules = check::MetaCheckContext {
        now,
        is_form: submission.is_form(),
        is_app_linked,
    };
    let CheckedMetaRequest { money, is_test } = match check::check(submission.body(), &rules) {
        Ok(checked) => checked,
        Err(violation) => return responses::invalid(world, &violation),
    };
    let events = submission.into_events();
    let id_of = |event: &Value| event.get("event_id").and_then(Value::as_str).map(Box::from);
    for poison in &poisons {
        let hit = events.iter().position(|event| {
            let id: Option<Box<str>> = id_of(event);
            let is_marked = event.pointer("/custom_data/poison").is_some();
            poison.matches(id.as_deref().unwrap_or_default(), is_marked)
        });
        if let Some(index) = hit {
            world.state().faults.mark_used(poison);
            return responses::poisoned(world, poison.names_index.then_some(index));
        }
    }
    let (count, account) = (events.len(), Arc::from(pixel));
    let mut state = world.state();
    let ledger = state.ledger(SimulatedNetwork::NetworkA);
    if is_test {
        ledger.totals.test += count as u64;
    }
    for (event, money) in events.into_iter().zip(money) {
        let name = event.get("event_name").and_then(Value::as_str);
        let name: Box<str> = name.unwrap_or_default().into();
        let window = match &*name {
            INSTALL_NAME => INSTALL_WINDOW,
            _ => WINDOW,
        };
        let accepted = AcceptedEvent {
            name,
            id: id_of(&event),
            money,
            dedup: Dedup::Window(window),
            payload: event,
        };
        ledger.receive(&account, accepted, now);
    }
    drop(state);
    responses::received(world, count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const PROOF: &str = "9bcde7f1d5e226d86e4692a62e5ec88f99306fb302d74b2dc3bff8a03770b63d";

    #[rstest]
    #[case(Some("SECRET"), Some(PROOF), true)]
    #[case(Some("SECRET"), None, false)]
    #[case(Some("OTHER"), Some(PROOF), false)]
    #[case(None, None, true)]
    #[case(None, Some(PROOF), true)]
    #[case(None, Some("xyz"), false)]
    fn checks_the_proof_of_the_app_secret(
        #[case] secret: Option<&str>,
        #[case] proof: Option<&str>,
        #[case] is_good: bool,
    ) {
        assert_eq!(is_proof("TOKEN", secret, proof), is_good);
    }

    #[rstest]
    #[case("/v26.0/1/events", Some(26))]
    #[case("/v26/1/events", None)]
    #[case("/26.0/1/events", None)]
    #[case("/v.0/1/events", None)]
    fn parses_the_version(#[case] path: &str, #[case] major: Option<u32>) {
        assert_eq!(version(path), major);
    }
}
