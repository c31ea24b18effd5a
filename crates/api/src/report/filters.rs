//! Filters by dimension.

use crate::query::QueryParameters;
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::device::Platform;
use tributary_domain::event::EventSource;
use tributary_domain::event::name::canonical;
use tributary_domain::report::{APP_PLATFORMS, Dimension};
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::id::LinkId;
use tributary_domain::vocabulary::text::check_length;

/// Longest filter value in characters.
const VALUE_CHARS_MAX: usize = 500;

/// Name of the link filter.
const LINK_ID: &str = "linkId";

/// Reads the filters by these dimensions.
pub(crate) fn read_filters(
    parameters: &mut QueryParameters<'_>,
    dimensions: &[Dimension],
) -> Vec<(Dimension, String)> {
    let mut filters = Vec::new();
    for dimension in dimensions {
        let read = |text: &str| value(*dimension, text);
        let value = match dimension {
            Dimension::Link => parameters.renamed(LINK_ID, dimension.as_str(), read),
            _ => parameters.optional(dimension.as_str(), read),
        };
        filters.extend(value.map(|value| (*dimension, value)));
    }
    filters
}

/// Parses a filter value. An empty value matches rows without a value.
fn value(dimension: Dimension, text: &str) -> Result<String, Problem> {
    let check = |is_valid: bool, message: &str| {
        let unknown = || Problem::new(FaultCode::UnknownValue, message.to_owned());
        is_valid.then(|| text.to_owned()).ok_or_else(unknown)
    };
    if text.is_empty() {
        return Ok(String::new());
    }
    match dimension {
        Dimension::Network => check(
            CreditedNetwork::parse(text).is_some(),
            "Must be one of network_a, network_b, network_c, network_d, apple_ads, other, organic.",
        ),
        Dimension::Link => check(LinkId::parse(text).is_ok(), "Must be a link id (lnk_…)."),
        Dimension::Platform => check(
            Platform::parse(text).is_some() || text == APP_PLATFORMS,
            "Must be one of ios, android, web, app.",
        ),
        Dimension::Source => check(
            EventSource::parse(text).is_some(),
            "Must be one of sdk, billing, web.",
        ),
        Dimension::Country => {
            let two = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
            check(two, "Must be two letters, such as DE.").map(|text| text.to_ascii_uppercase())
        }
        Dimension::Event => {
            check_length(text, 1, VALUE_CHARS_MAX)?;
            Ok(canonical(text).0)
        }
        Dimension::Campaign | Dimension::Adset | Dimension::Ad => {
            check_length(text, 1, VALUE_CHARS_MAX)?;
            Ok(text.to_owned())
        }
    }
}
