//! Names of ad networks for people. The API's identifier is shown beside the name.

use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::integration::Network;

/// A network's name and its identifier in the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NetworkLabel {
    pub(crate) name: &'static str,
    /// Empty where the name already says it, as for organic installs.
    pub(crate) id: &'static str,
}

impl NetworkLabel {
    /// The label where there is no network.
    pub(crate) const NONE: Self = Self {
        name: "–", id: ""
    };

    /// Returns the label of an ad network.
    pub(crate) const fn of(network: Network) -> Self {
        Self {
            name: network_name(network),
            id: network.as_str(),
        }
    }

    /// Returns the label of the network, or other source, that gets the credit.
    pub(crate) const fn credited(network: CreditedNetwork) -> Self {
        match network {
            CreditedNetwork::Ad(network) => Self::of(network),
            CreditedNetwork::AppleAds => Self {
                name: "Apple Ads",
                id: "apple_ads",
            },
            CreditedNetwork::Other => Self {
                name: "Other",
                id: "",
            },
            CreditedNetwork::Organic => Self {
                name: "Organic",
                id: "",
            },
        }
    }

    /// Returns the label of an identifier in a report.
    pub(crate) fn parse(id: &str) -> Option<Self> {
        CreditedNetwork::parse(id).map(Self::credited)
    }
}

/// Returns the name of an ad network.
pub(crate) const fn network_name(network: Network) -> &'static str {
    match network {
        Network::A => "Meta",
        Network::B => "Google Ads",
        Network::C => "TikTok",
        Network::D => "OpenAI Ads",
    }
}

/// Returns the name of an ad network with its identifier, for lists of choices.
pub(crate) const fn network_choice(network: Network) -> &'static str {
    match network {
        Network::A => "Meta (network_a)",
        Network::B => "Google Ads (network_b)",
        Network::C => "TikTok (network_c)",
        Network::D => "OpenAI Ads (network_d)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_combine_name_and_identifier() {
        for network in Network::ALL {
            let label = NetworkLabel::of(network);
            let expected = format!("{} ({})", label.name, label.id);
            assert_eq!(network_choice(network), expected);
        }
    }

    #[test]
    fn parses_identifiers_of_reports() {
        let label = |id: &str| NetworkLabel::parse(id).map(|label| (label.name, label.id));
        assert_eq!(label("network_c"), Some(("TikTok", "network_c")));
        assert_eq!(label("organic"), Some(("Organic", "")));
        assert_eq!(label("nonsense"), None);
    }
}
