//! Events from the app's SDK, from request to recorded event.

mod batch;

pub use batch::{
    RecordedSdkEvent, SdkChanges, SdkDecisions, SdkFacts, SdkRequest, decide, planning_click,
};

use super::{Credit, Event, EventSource, FUTURE_SKEW_MAX, name};
use crate::access::Environment;
use crate::device::{Consent, DeviceKey, Platform, UserKey};
use crate::exchange::ConvertedAmount;
use crate::install::{Attribution, DeviceState};
use crate::ledger::{MoneyPolicy, assess_revenue};
use crate::vocabulary::currency::Currency;
use crate::vocabulary::day::Day;
use crate::vocabulary::fault::{FaultCode, Problem};
use crate::vocabulary::id::{AppId, EventId};
use crate::vocabulary::money::Amount;
use crate::vocabulary::time::Timestamp;

/// Maximum number of events per request.
pub const BATCH_EVENTS_MAX: usize = 100;

/// A validated event from the SDK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SdkEvent {
    /// Internal id, which starts with the event's time.
    pub id: EventId,
    /// The SDK's event id, or the internal id if the SDK sent none.
    pub external_id: String,
    /// Event name, as sent.
    pub name: String,
    /// Event time, at most [`FUTURE_SKEW_MAX`] after arrival.
    pub occurred_at: Timestamp,
    /// Amount, as sent.
    pub revenue: Option<Amount>,
    /// Three-letter currency code, as sent.
    pub currency: Option<Currency>,
    /// Custom parameters as JSON text, as sent.
    pub params: Option<String>,
    /// The user's consent when the event was tracked. Older SDKs send none.
    pub consent: Option<Consent>,
}

impl SdkEvent {
    /// Returns amount, currency and day if the event has an amount to convert.
    pub fn exchange_day(&self) -> Option<(Amount, Currency, Day)> {
        Some((self.revenue?, self.currency?, Day::of(self.occurred_at)))
    }
}

/// Returns the event time: the reported time, clamped to [`FUTURE_SKEW_MAX`] after arrival, or the
/// arrival time if none was reported.
pub fn occurred_at(reported: Option<Timestamp>, received_at: Timestamp) -> Timestamp {
    reported.map_or(received_at, |reported| {
        reported.min(received_at.plus(FUTURE_SKEW_MAX))
    })
}

/// Parses a three-letter currency code in any case. Currencies without an exchange rate are
/// accepted too.
pub fn currency(text: &str) -> Result<Currency, Problem> {
    Currency::from_stored(&text.to_ascii_uppercase()).ok_or_else(|| {
        let message = "Must be a three-letter ISO 4217 code, for example USD.";
        Problem::new(FaultCode::InvalidFormat, message)
    })
}

/// Device data that events are recorded with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceContext {
    /// User id assigned by the app.
    pub user: Option<UserKey>,
    /// Platform; `None` for a device that never called `configure`.
    pub platform: Option<Platform>,
    /// Two-letter country code.
    pub country: Option<String>,
    /// Credit of the device's install.
    pub credit: Option<Credit>,
    /// The device's first counted payment so far.
    pub first_payment: Option<EventId>,
}

impl DeviceContext {
    /// Builds the context from a device's stored state.
    pub fn of(state: &DeviceState) -> Self {
        let device = state.device.as_ref();
        Self {
            user: state.identity.user.clone(),
            platform: device.map(|device| device.traits.platform),
            country: device.and_then(|device| device.country.clone()),
            credit: state.attribution.as_ref().map(Attribution::credit),
            first_payment: state.first_payment,
        }
    }
}

/// Outcome for one sent event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SdkEventOutcome {
    /// The event was recorded.
    Accepted,
    /// An event with this id exists already; nothing changed.
    Duplicate,
}

/// App, device and settings that a request's events are recorded with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SdkRequestContext {
    /// App id.
    pub app: AppId,
    /// Live or test environment.
    pub environment: Environment,
    /// The device that sent the request.
    pub device: DeviceKey,
    /// Time of arrival.
    pub received_at: Timestamp,
    /// Two-letter code of the country that the request came from.
    pub country: Option<String>,
    /// Whether revenue from the app's SDK counts.
    pub policy: MoneyPolicy,
    /// Whether the app forwards events only for devices with a verified attestation.
    pub requires_attestation: bool,
    /// Custom events that the app counts as income.
    pub revenue_events: Vec<String>,
}

/// Builds the event to record.
fn record(
    event: &SdkEvent,
    context: &SdkRequestContext,
    device_context: &DeviceContext,
    exchanged: Option<ConvertedAmount>,
) -> Event {
    let (name, original_name) = name::canonical(&event.name);
    let revenue = event.revenue.map(|amount| {
        let kind = name::money_kind(EventSource::Sdk, &name, &context.revenue_events);
        assess_revenue(amount, event.currency, exchanged, context.policy, kind)
    });
    let pays = revenue
        .as_ref()
        .is_some_and(|revenue| revenue.counted_usd() > Amount::ZERO);
    Event {
        id: event.id,
        external_id: event.external_id.clone(),
        app: context.app,
        environment: context.environment,
        source: EventSource::Sdk,
        name,
        original_name,
        occurred_at: event.occurred_at,
        received_at: context.received_at,
        device: Some(context.device.clone()),
        user: device_context.user.clone(),
        platform: device_context.platform,
        country: device_context
            .country
            .clone()
            .or_else(|| context.country.clone()),
        revenue,
        credit: device_context.credit.clone(),
        params: event.params.clone(),
        first_payment: pays && device_context.first_payment.is_none(),
        is_service_install: false,
        duplicate_of: None,
        dedup_root: None,
        consent: event.consent,
        skipped: Vec::new(),
        website: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::UncountedReason;
    use rstest::rstest;

    #[rstest]
    #[case::upper("EUR", true)]
    #[case::lower("eur", true)]
    #[case::not_a_currency("XAU", true)]
    #[case::unknown_code("ZZZ", true)]
    #[case::four("EURO", false)]
    #[case::digit("E1R", false)]
    #[case::empty("", false)]
    fn currency_codes(#[case] text: &str, #[case] is_accepted: bool) {
        assert_eq!(currency(text).is_ok(), is_accepted);
    }

    const RECEIVED: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    #[rstest]
    #[case::no_time_sent(None, 0)]
    #[case::long_ago(Some(-1_000_000_000), -1_000_000_000)]
    #[case::clock_ahead(Some(599_999), 599_999)]
    #[case::ten_minutes_ahead(Some(600_000), 600_000)]
    #[case::further_ahead_is_clamped(Some(600_001), 600_000)]
    fn event_times_are_clamped(#[case] reported: Option<i64>, #[case] expected: i64) {
        let moment = |offset| Timestamp::from_millis(RECEIVED.as_millis() + offset);
        assert_eq!(
            occurred_at(reported.map(moment), RECEIVED),
            moment(expected)
        );
    }

    fn sent(name: &str, amount: Option<&str>) -> SdkEvent {
        SdkEvent {
            id: EventId::from_bytes([1; 16]),
            external_id: "e1".to_owned(),
            name: name.to_owned(),
            occurred_at: RECEIVED,
            revenue: amount.map(|text| Amount::parse(text).unwrap()),
            currency: Some(Currency::USD),
            params: None,
            consent: None,
        }
    }

    fn recorded(event: SdkEvent, device_context: &DeviceContext) -> Event {
        let context = SdkRequestContext {
            app: AppId::from_bytes([2; 16]),
            environment: Environment::Live,
            device: DeviceKey::stored("d".to_owned()),
            received_at: RECEIVED,
            country: Some("FR".to_owned()),
            policy: MoneyPolicy::Count,
            requires_attestation: false,
            revenue_events: vec!["coins".to_owned()],
        };
        let exchanged = event
            .exchange_day()
            .map(|(usd, _, rate_day)| ConvertedAmount {
                usd,
                rate_day,
                rate: "1".to_owned(),
                source: "identity".to_owned(),
            });
        record(&event, &context, device_context, exchanged)
    }

    #[test]
    fn a_device_has_one_first_payment() {
        let state = DeviceContext {
            platform: Some(Platform::Ios),
            country: Some("DE".to_owned()),
            ..DeviceContext::default()
        };
        let paid = recorded(sent("purchase", Some("1")), &state);
        assert!(paid.first_payment && paid.country.as_deref() == Some("DE"));
        let again = DeviceContext {
            first_payment: Some(EventId::from_bytes([1; 16])),
            ..state.clone()
        };
        assert!(!recorded(sent("purchase", Some("1")), &again).first_payment);
        assert!(!recorded(sent("start_trial", Some("1")), &state).first_payment);
        assert!(!recorded(sent("purchase", Some("-1")), &state).first_payment);
        let unknown = recorded(sent("purchase", Some("1")), &DeviceContext::default());
        assert!(unknown.first_payment && unknown.country.as_deref() == Some("FR"));
    }

    #[rstest]
    #[case::payment("purchase", None)]
    #[case::listed("coins", None)]
    #[case::cart("add_to_cart", Some(UncountedReason::NotIncome))]
    #[case::custom("boss_defeated", Some(UncountedReason::NotIncome))]
    #[case::renewal("renewal", Some(UncountedReason::NotIncome))]
    #[case::refund("refund", Some(UncountedReason::NotIncome))]
    #[case::trial("start_trial", Some(UncountedReason::Predicted))]
    fn only_income_counts(#[case] name: &str, #[case] uncounted: Option<UncountedReason>) {
        let event = recorded(sent(name, Some("500")), &DeviceContext::default());
        let revenue = event.revenue.expect("the amount is stored");
        assert_eq!(
            (revenue.uncounted, event.first_payment),
            (uncounted, uncounted.is_none())
        );
    }

    #[test]
    fn a_standard_name_in_capitals_is_the_standard_name() {
        let event = recorded(sent("PURCHASE", None), &DeviceContext::default());
        assert_eq!(
            (event.name.as_str(), event.original_name.as_deref()),
            ("purchase", Some("PURCHASE"))
        );
    }
}
