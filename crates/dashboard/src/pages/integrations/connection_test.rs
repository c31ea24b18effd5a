//! `POST /apps/{app}/integrations/{network}/test` — sends one test event to the network now.

use super::{find, network_in_path};
use crate::access::FormSubmission;
use crate::failure::Failure;
use crate::state::DashboardHandles;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::AppsWrite;
use tributary_domain::forwarding::queue::QueueState;
use tributary_domain::integration::{IntegrationStatus, TestEventResult};

/// What came of it, below the button.
#[derive(Template)]
#[template(path = "integration_test.html")]
struct ConnectionTestResult {
    outcome: Result<TestEventResult, String>,
}

/// The fragment. What is tried is what is saved.
pub(crate) async fn test(
    State(handles): State<DashboardHandles>,
    posted: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let caller = posted.authorized.read_access();
    let network = network_in_path(&posted)?;
    let (integration, _) = find(&handles, &posted.context, &caller, network).await?;
    let outcome = match integration.status(&QueueState::default()) {
        (IntegrationStatus::NotConfigured, Some(words)) => Err(words),
        _ => (handles.probe)(caller.organization(), integration).await,
    };
    Ok(posted.page(&ConnectionTestResult { outcome }))
}
