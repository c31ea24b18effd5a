//! The four networks and the endpoints that faults can be aimed at.

use serde::{Deserialize, Serialize};

/// One of the networks, by the label that Tributary uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SimulatedNetwork {
    /// Meta Conversions API.
    NetworkA,
    /// Google Data Manager API, and Google's token endpoint.
    NetworkB,
    /// `TikTok` Events API 2.0.
    NetworkC,
    /// `OpenAI` Ads Conversions API.
    NetworkD,
}

impl SimulatedNetwork {
    /// All four, in the order of their labels.
    pub const ALL: [Self; 4] = [
        Self::NetworkA,
        Self::NetworkB,
        Self::NetworkC,
        Self::NetworkD,
    ];

    /// `network_a` and so on.
    pub fn label(self) -> &'static str {
        match self {
            Self::NetworkA => "network_a",
            Self::NetworkB => "network_b",
            Self::NetworkC => "network_c",
            Self::NetworkD => "network_d",
        }
    }

    /// The network with a label.
    pub fn parse(label: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|network| network.label() == label)
    }

    pub(crate) fn vendor(self) -> &'static str {
        match self {
            Self::NetworkA => "Meta Conversions API",
            Self::NetworkB => "Google Data Manager API",
            Self::NetworkC => "TikTok Events API",
            Self::NetworkD => "OpenAI Ads Conversions API",
        }
    }

    pub(crate) fn index(self) -> usize {
        match self {
            Self::NetworkA => 0,
            Self::NetworkB => 1,
            Self::NetworkC => 2,
            Self::NetworkD => 3,
        }
    }
}

/// What a request is for. Only `network_b` has more than one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Endpoint {
    /// Taking in events.
    #[default]
    Events,
    /// Google's token endpoint.
    Token,
    /// Google's asynchronous outcome of a request.
    Status,
}
