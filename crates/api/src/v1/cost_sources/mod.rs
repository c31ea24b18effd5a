//! `/api/v1/apps/{appId}/cost-sources`.

pub(super) mod delete;
pub(super) mod get;
pub(super) mod list;
pub(super) mod pull;
pub(super) mod replace;

mod fields;
mod shape;

use crate::error::ApiError;
use crate::path::PathIds;
use tributary_domain::cost_source::REPORTING_NETWORKS;
use tributary_domain::integration::Network;
use tributary_domain::refusal::Refusal;

/// Returns the network in the path. OpenAI Ads (`network_d`) has no cost report.
fn reporting_network(ids: &PathIds) -> Result<Network, ApiError> {
    let network = ids.network()?;
    if REPORTING_NETWORKS.contains(&network) {
        Ok(network)
    } else {
        Err(Refusal::NetworkNotFound.into())
    }
}
