//! The filter of the event log, read from the page's URL.

use crate::form_state::FormState;
use crate::query::UrlQuery;
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::device::{DeviceKey, UserKey};
use tributary_domain::event::name::canonical;
use tributary_domain::event::{EventFilter, EventSource};
use tributary_domain::forwarding::SkipReason;
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::calendar::day_bounds;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_domain::vocabulary::text::{check_external_id, parse_event_name};
use tributary_domain::vocabulary::timezone::Timezone;

/// Query parameters of the filter.
const FIELDS: [&str; 10] = [
    "name",
    "source",
    "network",
    "deviceId",
    "userId",
    "eventId",
    "from",
    "to",
    "notSentTo",
    "reason",
];

/// A filter with its form.
pub(super) struct EventSearch {
    pub(super) filter: EventFilter,
    pub(super) form: FormState,
}

impl EventSearch {
    /// Reads the filter. The days are days in the app's time zone.
    pub(super) fn read(query: &UrlQuery, zone: &Timezone) -> Self {
        let mut faults = Faults::new();
        let unknown = || Problem::new(FaultCode::UnknownValue, "Choose one of the list.");
        let from = read(query, "from", &mut faults, Day::parse);
        let to = read(query, "to", &mut faults, |text| last_day(text, from));
        let (from, until) = day_bounds(from, to, zone);
        let filter = EventFilter {
            name: read(query, "name", &mut faults, |text| {
                parse_event_name(text).map(|name| canonical(&name).0)
            }),
            external_id: read(query, "eventId", &mut faults, |id| {
                check_external_id(id).map(str::to_owned)
            }),
            device: read(query, "deviceId", &mut faults, DeviceKey::parse),
            user: read(query, "userId", &mut faults, UserKey::parse),
            source: read(query, "source", &mut faults, |text| {
                EventSource::parse(text).ok_or_else(unknown)
            }),
            network: read(query, "network", &mut faults, |text| {
                CreditedNetwork::parse(text).ok_or_else(unknown)
            }),
            not_sent: not_sent(query, &mut faults),
            from,
            until,
            ..EventFilter::default()
        };
        let value = |name: &str| query.get(name).unwrap_or_default();
        let form = FIELDS.iter().fold(FormState::default(), |form, name| {
            form.with(name, value(name))
        });
        Self {
            filter,
            form: form.with_faults(faults),
        }
    }

    /// Returns whether every field of the filter is valid.
    pub(super) fn is_valid(&self) -> bool {
        self.form.faults().is_empty()
    }
}

/// Reads the network that events were not sent to, and the reason. Both are required together.
fn not_sent(query: &UrlQuery, faults: &mut Faults) -> Option<(Network, SkipReason)> {
    let unknown = || Problem::new(FaultCode::UnknownValue, "Unknown network or reason.");
    let network = query.get("notSentTo").unwrap_or_default();
    let reason = query.get("reason").unwrap_or_default();
    if network.is_empty() && reason.is_empty() {
        return None;
    }
    let network = faults.check("notSentTo", Network::parse(network).ok_or_else(unknown));
    let reason = faults.check("reason", SkipReason::parse(reason).ok_or_else(unknown));
    network.zip(reason)
}

/// Reads a field of a filter. A value that means nothing is a fault, not ignored.
pub(crate) fn read<T>(
    query: &UrlQuery,
    name: &str,
    faults: &mut Faults,
    parse: impl FnOnce(&str) -> Result<T, Problem>,
) -> Option<T> {
    faults.check(name, parse(query.get(name)?))
}

/// Parses the last day, which must not be before the first.
pub(crate) fn last_day(text: &str, from: Option<Day>) -> Result<Day, Problem> {
    let to = Day::parse(text)?;
    if from.is_some_and(|from| to < from) {
        let message = "Must not be before the first day.";
        return Err(Problem::new(FaultCode::OutOfRange, message));
    }
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn search(query: &str) -> EventSearch {
        let zone = Timezone::parse("Europe/Berlin").unwrap();
        EventSearch::read(&UrlQuery::of(Some(query)), &zone)
    }

    #[test]
    fn days_are_days_of_the_apps_time_zone() {
        let found = search("from=2026-03-29&to=2026-03-29&name=Purchase");
        assert!(found.is_valid());
        let (from, until) = (found.filter.from.unwrap(), found.filter.until.unwrap());
        // The day on which clocks go forward has 23 hours.
        assert_eq!(until.as_millis() - from.as_millis(), 23 * 3_600_000);
        assert_eq!(found.filter.name.as_deref(), Some("purchase"));
        assert_eq!(found.form.value("from"), "2026-03-29");
    }

    #[test]
    fn a_link_from_the_undelivered_events_is_a_filter() {
        let found = search("name=purchase&notSentTo=network_c&reason=consent");
        assert!(found.is_valid());
        let expected = Some((Network::C, SkipReason::Consent));
        assert_eq!(found.filter.not_sent, expected);
        assert!(!found.filter.is_indexed());
    }

    #[rstest]
    #[case("from=yesterday", "from")]
    #[case("from=2026-03-29&to=2026-03-28", "to")]
    #[case("source=fax", "source")]
    #[case("network=network_z", "network")]
    #[case("notSentTo=network_c", "reason")]
    #[case("notSentTo=network_c&reason=gone", "reason")]
    #[case("reason=consent", "notSentTo")]
    fn a_filter_that_means_nothing_is_named(#[case] query: &str, #[case] field: &str) {
        let found = search(query);
        assert!(!found.is_valid());
        assert!(found.form.fault(field).is_some());
    }
}
