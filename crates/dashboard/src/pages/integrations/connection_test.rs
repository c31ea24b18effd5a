//! `POST /apps/{app}/integrations/{network}/test` — sends one test event to the network.

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

/// The result below the button.
#[derive(Template)]
#[template(path = "integration_test.html")]
struct ConnectionTestResult {
    outcome: Result<TestEventResult, String>,
}

/// Tests the saved settings and returns the result as a fragment.
pub(crate) async fn test(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let caller = submission.authorized.read_access();
    let network = network_in_path(&submission)?;
    let (integration, _) = find(&handles, &submission.context, &caller, network).await?;
    let outcome = match integration.status(&QueueState::default()) {
        (IntegrationStatus::NotConfigured, Some(reason)) => Err(reason),
        _ => (handles.probe)(caller.organization(), integration).await,
    };
    Ok(submission.page(&ConnectionTestResult { outcome }))
}
