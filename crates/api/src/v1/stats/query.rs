//! The query for a report.

use crate::error::ApiError;
use crate::page::PageQuery;
use crate::query::QueryParameters;
use crate::report::out_of_range;
use crate::report::range::RangeQuery;
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::device::Platform;
use tributary_domain::event::EventSource;
use tributary_domain::event::name::canonical;
use tributary_domain::report::{DIMENSIONS_MAX, Dimension, GroupBy, TimeUnit};
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::id::LinkId;
use tributary_domain::vocabulary::text::check_length;

/// Longest filter value in characters.
const VALUE_CHARS_MAX: usize = 500;

/// Name of the link filter.
const LINK_ID: &str = "linkId";

/// Requested grouping, filters, range and page.
#[derive(Debug)]
pub(super) struct StatsQuery {
    pub(super) group: GroupBy,
    pub(super) filters: Vec<(Dimension, String)>,
    pub(super) range: RangeQuery,
    pub(super) page: PageQuery,
}

impl StatsQuery {
    pub(super) fn read(parameters: &mut QueryParameters<'_>) -> Self {
        let by_day = || GroupBy {
            time: Some(TimeUnit::Day),
            dimensions: Vec::new(),
        };
        let group = parameters.optional("groupBy", GroupBy::parse);
        let mut filters = Vec::new();
        for dimension in Dimension::ALL {
            let read = |text: &str| value(*dimension, text);
            let value = match dimension {
                Dimension::Link => parameters.renamed(LINK_ID, dimension.as_str(), read),
                _ => parameters.optional(dimension.as_str(), read),
            };
            filters.extend(value.map(|value| (*dimension, value)));
        }
        Self {
            group: group.unwrap_or_else(by_day),
            filters,
            range: RangeQuery::read(parameters),
            page: PageQuery::read(parameters),
        }
    }

    /// Rejects more filters than roll-ups support.
    pub(super) fn check(&self) -> Result<(), ApiError> {
        let Some((dimension, _)) = self.filters.get(DIMENSIONS_MAX) else {
            return Ok(());
        };
        let message = format!("Filter by at most {DIMENSIONS_MAX} dimensions.");
        Err(out_of_range(dimension.as_str(), message))
    }
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
            Platform::parse(text).is_some(),
            "Must be one of ios, android, web.",
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
