//! Fault injection: kinds of faults and their queue.

mod queue;

pub(crate) use queue::{ActiveFault, EarlyPick, FaultQueue};

use crate::network::{Endpoint, SimulatedNetwork};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Body of `POST /control/faults`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct FaultInjection {
    pub(crate) network: SimulatedNetwork,
    /// Affected account; all accounts if absent.
    pub(crate) account: Option<String>,
    #[serde(default)]
    pub(crate) endpoint: Endpoint,
    pub(crate) fault: SimulatedFault,
    /// Number of affected requests. If absent, the fault stays active until it is cleared.
    pub(crate) times: Option<u32>,
}

/// Kind of fault.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub(crate) enum SimulatedFault {
    /// Responds with this status and body instead of the network's own response.
    Status {
        status: u16,
        /// A string is sent as it is, anything else as JSON.
        #[serde(default)]
        body: Value,
        #[serde(default)]
        headers: BTreeMap<String, String>,
        /// Accepts the events first, like a gateway that lost the response.
        #[serde(default)]
        processed: bool,
    },
    /// Delays the response.
    Delay { ms: u64 },
    /// Sends no response until the faults are cleared.
    Hang {},
    /// Resets the connection before the events are accepted.
    ResetBefore {},
    /// Resets the connection after the events are accepted.
    ResetAfter {},
    /// Rejects the credentials as expired.
    ExpireTokens {},
    /// Rejects requests that contain certain events.
    Poison {
        #[serde(default)]
        ids: Vec<String>,
        /// Matches events whose id starts with this prefix.
        prefix: Option<String>,
        /// Whether the response names the event.
        #[serde(default = "yes")]
        index: bool,
        /// `network_c` accepts the other events and lists the matching events as failed.
        #[serde(default)]
        partial: bool,
        /// `network_d` returns a list `detail` that names the event by its path.
        #[serde(default)]
        path: bool,
    },
    /// Sets the usage reported by `network_a`.
    Usage {
        percent: u32,
        #[serde(default)]
        regain_minutes: u32,
    },
    /// Sets the request status reported by `network_b`.
    RequestStatus {
        status: String,
        reason: Option<String>,
        count: Option<u64>,
    },
}

fn yes() -> bool {
    true
}

impl SimulatedFault {
    /// Returns the kind's name.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Status { .. } => "status",
            Self::Delay { .. } => "delay",
            Self::Hang {} => "hang",
            Self::ResetBefore {} => "reset_before",
            Self::ResetAfter {} => "reset_after",
            Self::ExpireTokens {} => "expire_tokens",
            Self::Poison { .. } => "poison",
            Self::Usage { .. } => "usage",
            Self::RequestStatus { .. } => "request_status",
        }
    }

    /// Returns whether the fault is queued. Each request uses the next queued fault. Other faults
    /// apply independently of the queue.
    fn takes_turns(&self) -> bool {
        !matches!(
            self,
            Self::Poison { .. } | Self::Usage { .. } | Self::RequestStatus { .. }
        )
    }
}

/// A rule for rejecting events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventRejectionRule {
    pub(crate) ids: Vec<String>,
    pub(crate) prefix: Option<String>,
    pub(crate) names_index: bool,
    pub(crate) is_partial: bool,
    pub(crate) by_path: bool,
    pub(super) number: u64,
}

impl EventRejectionRule {
    /// Returns whether the rule matches an event by its id. A rule without ids and prefix matches
    /// events with a `poison` field among their free-form fields (`is_marked`).
    pub(crate) fn matches(&self, id: &str, is_marked: bool) -> bool {
        if self.ids.is_empty() && self.prefix.is_none() {
            return is_marked;
        }
        let begins = self
            .prefix
            .as_deref()
            .is_some_and(|one| id.starts_with(one));
        begins || self.ids.iter().any(|one| one == id)
    }
}
