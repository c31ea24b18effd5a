//! Faults on demand: what can go wrong, and the queue of what shall.

mod queue;

pub(crate) use queue::{ActiveFault, EarlyPick, FaultQueue};

use crate::network::{Endpoint, SimulatedNetwork};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// An order: `POST /control/faults`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct FaultInjection {
    pub(crate) network: SimulatedNetwork,
    /// Every account without one.
    pub(crate) account: Option<String>,
    #[serde(default)]
    pub(crate) endpoint: Endpoint,
    pub(crate) fault: SimulatedFault,
    /// How often; until it is cleared without one.
    pub(crate) times: Option<u32>,
}

/// What goes wrong.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub(crate) enum SimulatedFault {
    /// An answer from the script instead of the network's own.
    Status {
        status: u16,
        /// A string goes out as it is, anything else as JSON.
        #[serde(default)]
        body: Value,
        #[serde(default)]
        headers: BTreeMap<String, String>,
        /// The events are taken in first: a gateway that lost the answer.
        #[serde(default)]
        processed: bool,
    },
    /// A late answer.
    Delay { ms: u64 },
    /// No answer until the faults are cleared.
    Hang {},
    /// The connection ends before anything is taken in.
    ResetBefore {},
    /// The events are taken in, and the connection ends without an answer.
    ResetAfter {},
    /// Credentials are no longer good.
    ExpireTokens {},
    /// Requests that hold certain events are refused.
    Poison {
        #[serde(default)]
        ids: Vec<String>,
        /// Every event whose id begins so.
        prefix: Option<String>,
        /// Whether the answer says which event it is.
        #[serde(default = "yes")]
        index: bool,
        /// `network_c` takes the other events and lists these as failed.
        #[serde(default)]
        partial: bool,
        /// `network_d` names the event by its path, as a list `detail`.
        #[serde(default)]
        path: bool,
    },
    /// What `network_a` says about its limits.
    Usage {
        percent: u32,
        #[serde(default)]
        regain_minutes: u32,
    },
    /// What `network_b` says about the outcome of a request.
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
    /// The name of its kind.
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

    /// Whether it takes its turn, one per request. The others stand beside the queue: they colour answers.
    fn takes_turns(&self) -> bool {
        !matches!(
            self,
            Self::Poison { .. } | Self::Usage { .. } | Self::RequestStatus { .. }
        )
    }
}

/// An event that is to be refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Poison {
    pub(crate) ids: Vec<String>,
    pub(crate) prefix: Option<String>,
    pub(crate) names_index: bool,
    pub(crate) is_partial: bool,
    pub(crate) by_path: bool,
    pub(super) number: u64,
}

impl Poison {
    /// Whether it is meant: by its id or, when neither ids nor a prefix are given, by a field `poison` in its
    /// free fields.
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
