//! The four networks, and the endpoints that faults can target.

use serde::{Deserialize, Serialize};

/// A network, by Tributary's identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SimulatedNetwork {
    /// Meta Conversions API.
    NetworkA,
    /// Google Data Manager API, and Google's token endpoint.
    NetworkB,
    /// TikTok Events API 2.0.
    NetworkC,
    /// OpenAI Ads Conversions API.
    NetworkD,
}

impl SimulatedNetwork {
    /// All four networks, in the order of their identifiers.
    pub const ALL: [Self; 4] = [
        Self::NetworkA,
        Self::NetworkB,
        Self::NetworkC,
        Self::NetworkD,
    ];

    /// Returns the identifier, such as `network_a`.
    pub fn label(self) -> &'static str {
        match self {
            Self::NetworkA => "network_a",
            Self::NetworkB => "network_b",
            Self::NetworkC => "network_c",
            Self::NetworkD => "network_d",
        }
    }

    /// Returns the network with an identifier.
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

/// Endpoint of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Endpoint {
    /// Event ingestion.
    #[default]
    Events,
    /// Google's token endpoint.
    Token,
    /// Google's endpoint for the status of a request.
    Status,
    /// The cost report.
    Reports,
}
