//! Display names of ad networks. The API's identifier is shown beside the name.

use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::integration::Network;

/// A network's name and its identifier in the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NetworkLabel {
    pub(crate) name: &'static str,
    /// Empty where the name alone is clear, as for organic installs.
    pub(crate) id: &'static str,
}

impl NetworkLabel {
    /// The label if there is no network.
    pub(crate) const NONE: Self = Self {
        name: "–", id: ""
    };

    /// Returns the label for an ad network.
    pub(crate) const fn of(network: Network) -> Self {
        Self {
            name: network.name(),
            id: network.as_str(),
        }
    }

    /// Returns the label for the network, or other source, that gets the credit.
    pub(crate) const fn credited(network: CreditedNetwork) -> Self {
        let id = match network {
            CreditedNetwork::Ad(_) | CreditedNetwork::AppleAds => network.as_str(),
            CreditedNetwork::Other | CreditedNetwork::Organic => "",
        };
        Self {
            name: network.name(),
            id,
        }
    }

    /// Returns the label for a network identifier from a report.
    pub(crate) fn parse(id: &str) -> Option<Self> {
        CreditedNetwork::parse(id).map(Self::credited)
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
            assert_eq!(network.name_with_id(), expected);
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
