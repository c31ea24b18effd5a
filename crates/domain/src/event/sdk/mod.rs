//! Events from the app's SDK: from what was sent to what is recorded.

mod batch;

pub use batch::{
    RecordedSdkEvent, SdkChanges, SdkDecisions, SdkFacts, SdkRequest, decide, planning_click,
};

use super::{Credit, Event, EventSource, FUTURE_SKEW_MAX, name};
use crate::access::Environment;
use crate::device::{DeviceKey, Platform, UserKey};
use crate::exchange::ConvertedAmount;
use crate::install::{Attribution, DeviceState};
use crate::ledger::{MoneyPolicy, assess_revenue};
use crate::vocabulary::currency::Currency;
use crate::vocabulary::day::Day;
use crate::vocabulary::fault::{FaultCode, Problem};
use crate::vocabulary::id::{AppId, EventId};
use crate::vocabulary::money::Amount;
use crate::vocabulary::time::Timestamp;

/// Events of one request.
pub const BATCH_EVENTS_MAX: usize = 100;

/// An event as the SDK sent it, each field checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SdkEvent {
    /// Our id, made of the event's own time.
    pub id: EventId,
    /// The id that the SDK gave; ours where it gave none.
    pub external_id: String,
    /// As sent.
    pub name: String,
    /// When it happened, not later than [`AHEAD_MAX`] after its arrival.
    pub occurred_at: Timestamp,
    /// As sent.
    pub revenue: Option<Amount>,
    /// Three letters, as sent.
    pub currency: Option<Currency>,
    /// As sent, as JSON text.
    pub params: Option<String>,
}

impl SdkEvent {
    /// The currency and day to ask a rate for, where there is money to be exchanged.
    pub fn exchange_day(&self) -> Option<(Amount, Currency, Day)> {
        Some((self.revenue?, self.currency?, Day::of(self.occurred_at)))
    }
}

/// When an event happened: when it says so, but not long after it arrived; else when it arrived.
pub fn occurred_at(said: Option<Timestamp>, received_at: Timestamp) -> Timestamp {
    said.map_or(received_at, |said| {
        said.min(received_at.plus(FUTURE_SKEW_MAX))
    })
}

/// Three letters, in any case. Whether there is a rate for them is another question.
pub fn currency(text: &str) -> Result<Currency, Problem> {
    Currency::from_stored(&text.to_ascii_uppercase()).ok_or_else(|| {
        let message = "Must be an ISO 4217 code of three letters, for example USD.";
        Problem::new(FaultCode::InvalidFormat, message)
    })
}

/// What is known about the device that an event happened on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceContext {
    /// By whom, in the app's own words.
    pub user: Option<UserKey>,
    /// What it runs on; nothing for a device nobody configured.
    pub platform: Option<Platform>,
    /// Two letters.
    pub country: Option<String>,
    /// What its install is credited to.
    pub credit: Option<Credit>,
    /// Its first payment so far that counted.
    pub first_payment: Option<EventId>,
}

impl DeviceContext {
    /// Returns what the events of a device are recorded with.
    pub fn of(known: &DeviceState) -> Self {
        let device = known.device.as_ref();
        Self {
            user: known.identity.user.clone(),
            platform: device.map(|device| device.traits.platform),
            country: device.and_then(|device| device.country.clone()),
            credit: known.attribution.as_ref().map(Attribution::credit),
            first_payment: known.first_payment,
        }
    }
}

/// What became of an event that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    /// It is recorded.
    Accepted,
    /// An event of this id was recorded before; this one changed nothing.
    Duplicate,
}

/// Where and when events arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SdkRequestContext {
    /// For which app.
    pub app: AppId,
    /// Live or test.
    pub environment: Environment,
    /// Of which device.
    pub device: DeviceKey,
    /// When.
    pub received_at: Timestamp,
    /// Two letters, of this request.
    pub country: Option<String>,
    /// What the app says about its SDK's money.
    pub policy: MoneyPolicy,
    /// The custom events that the app counts as income.
    pub revenue_events: Vec<String>,
    /// Whether the app holds back what suspicious installs do.
    pub holds_suspicious: bool,
}

/// The event as it is recorded.
fn record(
    event: &SdkEvent,
    arrival: &SdkRequestContext,
    owner: &DeviceContext,
    exchanged: Option<ConvertedAmount>,
) -> Event {
    let (name, original_name) = name::canonical(&event.name);
    let revenue = event.revenue.map(|amount| {
        let kind = name::money_kind(EventSource::Sdk, &name, &arrival.revenue_events);
        assess_revenue(amount, event.currency, exchanged, arrival.policy, kind)
    });
    let pays = revenue
        .as_ref()
        .is_some_and(|revenue| revenue.counted_usd() > Amount::ZERO);
    Event {
        id: event.id,
        external_id: event.external_id.clone(),
        app: arrival.app,
        environment: arrival.environment,
        source: EventSource::Sdk,
        name,
        original_name,
        occurred_at: event.occurred_at,
        received_at: arrival.received_at,
        device: Some(arrival.device.clone()),
        user: owner.user.clone(),
        platform: owner.platform,
        country: owner.country.clone().or_else(|| arrival.country.clone()),
        revenue,
        credit: owner.credit.clone(),
        params: event.params.clone(),
        first_payment: pays && owner.first_payment.is_none(),
        is_service_install: false,
        duplicate_of: None,
        dedup_root: None,
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
    #[case::no_money("XAU", true)]
    #[case::never_was_one("ZZZ", true)]
    #[case::four("EURO", false)]
    #[case::digit("E1R", false)]
    #[case::empty("", false)]
    fn currencies(#[case] text: &str, #[case] taken: bool) {
        assert_eq!(currency(text).is_ok(), taken);
    }

    const RECEIVED: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    #[rstest]
    #[case::silent(None, 0)]
    #[case::long_ago(Some(-1_000_000_000), -1_000_000_000)]
    #[case::a_clock_that_is_ahead(Some(599_999), 599_999)]
    #[case::ten_minutes_ahead(Some(600_000), 600_000)]
    #[case::further_ahead_is_clamped(Some(600_001), 600_000)]
    fn the_time_of_an_event(#[case] said: Option<i64>, #[case] expected: i64) {
        let moment = |offset| Timestamp::from_millis(RECEIVED.as_millis() + offset);
        assert_eq!(occurred_at(said.map(moment), RECEIVED), moment(expected));
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
        }
    }

    fn recorded(event: SdkEvent, owner: &DeviceContext) -> Event {
        let arrival = SdkRequestContext {
            app: AppId::from_bytes([2; 16]),
            environment: Environment::Live,
            device: DeviceKey::stored("d".to_owned()),
            received_at: RECEIVED,
            country: Some("FR".to_owned()),
            policy: MoneyPolicy::Count,
            revenue_events: vec!["coins".to_owned()],
            holds_suspicious: false,
        };
        let exchanged = event
            .exchange_day()
            .map(|(usd, _, rate_day)| ConvertedAmount {
                usd,
                rate_day,
                rate: "1".to_owned(),
                source: "identity".to_owned(),
            });
        record(&event, &arrival, owner, exchanged)
    }

    #[test]
    fn a_device_pays_for_the_first_time_once() {
        let known = DeviceContext {
            platform: Some(Platform::Ios),
            country: Some("DE".to_owned()),
            ..DeviceContext::default()
        };
        let paid = recorded(sent("purchase", Some("1")), &known);
        assert!(paid.first_payment && paid.country.as_deref() == Some("DE"));
        let again = DeviceContext {
            first_payment: Some(EventId::from_bytes([1; 16])),
            ..known.clone()
        };
        assert!(!recorded(sent("purchase", Some("1")), &again).first_payment);
        assert!(!recorded(sent("start_trial", Some("1")), &known).first_payment);
        assert!(!recorded(sent("purchase", Some("-1")), &known).first_payment);
        let stranger = recorded(sent("purchase", Some("1")), &DeviceContext::default());
        assert!(stranger.first_payment && stranger.country.as_deref() == Some("FR"));
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
        let revenue = event.revenue.expect("the amount is kept");
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
