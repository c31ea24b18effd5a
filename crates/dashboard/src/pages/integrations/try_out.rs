//! `POST /apps/{app}/integrations/{network}/test` — sends one test event to the network now.

use super::{find, network_of};
use crate::access::Posted;
use crate::failure::Failure;
use crate::state::Handles;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::AppsWrite;
use tributary_domain::forwarding::queue::QueueState;
use tributary_domain::integration::{Probed, Status};

/// What came of it, below the button.
#[derive(Template)]
#[template(path = "integration_test.html")]
struct TriedOut {
    outcome: Result<Probed, String>,
}

/// The fragment. What is tried is what is saved.
pub(crate) async fn test(
    State(handles): State<Handles>,
    posted: Posted<AppsWrite>,
) -> Result<Response, Failure> {
    let caller = posted.authorized.reading();
    let network = network_of(&posted)?;
    let (integration, _) = find(&handles, &posted.reader, &caller, network).await?;
    let outcome = match integration.status(&QueueState::default()) {
        (Status::NotConfigured, Some(words)) => Err(words),
        _ => (handles.probe)(caller.organization(), integration).await,
    };
    Ok(posted.page(&TriedOut { outcome }))
}
