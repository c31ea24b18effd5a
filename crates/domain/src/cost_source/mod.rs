//! Cost sources: an app's access to the cost report of one ad network, with credentials that only
//! read reports.

mod change;
mod pull;
mod reported;
mod settings;

pub use change::CostSourceDraft;
pub use pull::{
    DaySpan, FIRST_PULL_DAYS, HISTORY_DAYS_MAX, PULL_INTERVAL, PullOutcome, PullProblem, PullState,
    SPAN_DAYS_MAX, days_to_pull, restated_days,
};
pub use reported::{ReportedCost, imported_costs};
pub use settings::{cost_credentials_of, cost_settings_of};

use crate::integration::{Credential, IntegrationStatus, Network};
use crate::refusal::Refusal;
use crate::vocabulary::id::AppId;
use crate::vocabulary::revision::{Precondition, Revision};
use crate::vocabulary::time::Timestamp;
use std::collections::BTreeMap;

/// The networks with a reporting interface. OpenAI Ads (`network_d`) documents none.
pub const REPORTING_NETWORKS: [Network; 3] = [Network::A, Network::B, Network::C];

/// Owner of a cost source's credentials in their encryption scope, so that a credential of an
/// integration cannot be used here, nor the other way round.
pub const fn credential_owner(network: Network) -> &'static str {
    match network {
        Network::A => "cost_source_network_a",
        Network::B => "cost_source_network_b",
        Network::C => "cost_source_network_c",
        Network::D => "cost_source_network_d",
    }
}

/// An app's access to a network's cost report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostSource {
    /// App id.
    pub app: AppId,
    /// The network.
    pub network: Network,
    /// Whether costs are pulled.
    pub enabled: bool,
    /// Settings by name.
    pub settings: BTreeMap<String, String>,
    /// Credentials by name.
    pub credentials: BTreeMap<String, Credential>,
    /// The pulls so far, and the next one.
    pub pulls: PullState,
    /// Time of the last change; `None` if the source is not stored.
    pub updated_at: Option<Timestamp>,
    /// Number of changes.
    pub revision: Revision,
}

impl CostSource {
    /// Returns a source without settings.
    pub fn new(app: AppId, network: Network) -> Self {
        Self {
            app,
            network,
            enabled: false,
            settings: BTreeMap::new(),
            credentials: BTreeMap::new(),
            pulls: PullState::default(),
            updated_at: None,
            revision: Revision::from_number(0),
        }
    }

    /// Returns the tag of this version. It contains the time of the change, because a source that was
    /// removed and set again begins with the first revision.
    pub fn tag(&self) -> String {
        let at = self.updated_at.map_or(0, Timestamp::as_millis);
        format!("{}.{at}", self.revision.number())
    }

    /// Checks the precondition of a change.
    pub fn admit(&self, precondition: &Precondition) -> Result<(), Refusal> {
        if precondition.admits(&self.tag()) {
            Ok(())
        } else {
            Err(Refusal::VersionConflict)
        }
    }

    /// Returns the status and its reason.
    pub fn status(&self) -> (IntegrationStatus, Option<String>) {
        let missing = settings::missing(self);
        if !missing.is_empty() {
            let names: Vec<&str> = missing.iter().map(|(_, name)| *name).collect();
            let reason = format!("Missing: {}.", names.join(", "));
            return (IntegrationStatus::NotConfigured, Some(reason));
        }
        if !self.enabled {
            let reason = "Off. Set enabled to true to import costs.".to_owned();
            return (IntegrationStatus::Paused, Some(reason));
        }
        match &self.pulls.problem {
            Some(problem) if problem.is_refusal => {
                let reason = format!(
                    "The network refused the request ({}): {} Imports are paused. Correct the \
                     account or the credentials, or import again.",
                    problem.code, problem.message
                );
                (IntegrationStatus::Paused, Some(reason))
            }
            Some(problem) => {
                let reason = format!(
                    "The last import failed ({}): {} It is tried again.",
                    problem.code, problem.message
                );
                (IntegrationStatus::Error, Some(reason))
            }
            None => (IntegrationStatus::Active, None),
        }
    }
}
