//! Roll-ups: figures that grow with every click and event, in the transaction that records it.
//!
//! A report then costs the same on a thousand events and on a hundred million. Buckets are 15 minutes of UTC,
//! because some time zones are off by a quarter of an hour. There are three tables, each for the questions it
//! answers: who is it credited to, what happened, where. An event counts once in each.

use crate::access::Environment;
use crate::click::Click;
use crate::event::{Credit, Event, EventSource, name};
use crate::vocabulary::id::{AppId, LinkId};
use crate::vocabulary::time::Timestamp;
use std::collections::BTreeMap;

/// Milliseconds of a bucket.
const BUCKET_MILLIS: i64 = 15 * 60 * 1_000;

/// Fifteen minutes of UTC, by their begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bucket(i64);

impl Bucket {
    /// The one that a moment falls into.
    pub const fn of(moment: Timestamp) -> Self {
        Self(moment.as_millis().div_euclid(BUCKET_MILLIS) * BUCKET_MILLIS)
    }

    /// When it begins, as stored.
    pub const fn begins_at(self) -> Timestamp {
        Timestamp::from_millis(self.0)
    }
}

/// What is counted. Money is in millionths of a dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "each is the figure it is named after")]
pub struct Figures {
    pub clicks: i64,
    pub installs: i64,
    pub organic_installs: i64,
    pub sign_ups: i64,
    pub trials: i64,
    pub qualified_trials: i64,
    pub subscriptions: i64,
    pub purchases: i64,
    pub renewals: i64,
    pub refunds: i64,
    pub events: i64,
    pub paying_devices: i64,
    pub revenue_micros: i64,
    pub refunded_micros: i64,
}

impl Figures {
    /// How many there are.
    pub const COUNT: usize = 14;

    /// The columns, in the order of [`Self::values`].
    pub const COLUMNS: [&'static str; Self::COUNT] = [
        "clicks",
        "installs",
        "organic_installs",
        "sign_ups",
        "trials",
        "qualified_trials",
        "subscriptions",
        "purchases",
        "renewals",
        "refunds",
        "events",
        "paying_devices",
        "revenue_micros",
        "refunded_micros",
    ];

    /// One number a column.
    pub const fn values(&self) -> [i64; Self::COUNT] {
        [
            self.clicks,
            self.installs,
            self.organic_installs,
            self.sign_ups,
            self.trials,
            self.qualified_trials,
            self.subscriptions,
            self.purchases,
            self.renewals,
            self.refunds,
            self.events,
            self.paying_devices,
            self.revenue_micros,
            self.refunded_micros,
        ]
    }

    /// Reads what [`Self::values`] gave.
    pub const fn from_values(values: [i64; Self::COUNT]) -> Self {
        Self {
            clicks: values[0],
            installs: values[1],
            organic_installs: values[2],
            sign_ups: values[3],
            trials: values[4],
            qualified_trials: values[5],
            subscriptions: values[6],
            purchases: values[7],
            renewals: values[8],
            refunds: values[9],
            events: values[10],
            paying_devices: values[11],
            revenue_micros: values[12],
            refunded_micros: values[13],
        }
    }

    /// What one event adds. An `install` that a client sent is in the log like any event; the one install of
    /// a device is the service's own.
    pub fn of_event(event: &Event) -> Self {
        let is = |wanted: &str| i64::from(event.name == wanted);
        let is_install = i64::from(event.own && event.name == name::INSTALL);
        let is_organic = event
            .credit
            .as_ref()
            .is_none_or(|credit| credit.match_type == crate::attribution::MatchType::Organic);
        let counted = event
            .revenue
            .as_ref()
            .map_or(0, |revenue| revenue.counted_usd().micros());
        Self {
            clicks: 0,
            installs: is_install,
            organic_installs: is_install * i64::from(is_organic),
            sign_ups: is("sign_up"),
            trials: is("start_trial"),
            qualified_trials: is("qualified_trial"),
            subscriptions: is("subscribe"),
            purchases: is("purchase"),
            renewals: is("renewal"),
            refunds: is("refund"),
            events: 1,
            paying_devices: i64::from(event.first_payment),
            revenue_micros: counted.max(0),
            refunded_micros: counted.min(0).saturating_neg(),
        }
    }

    fn add(&mut self, other: &Self, sign: i64) {
        let mut sum = self.values();
        for (total, value) in sum.iter_mut().zip(other.values()) {
            *total = total.saturating_add(value.saturating_mul(sign));
        }
        *self = Self::from_values(sum);
    }

    /// True when nothing would change.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

/// Who it is credited to. Texts are empty where there is none: a key has no nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct CreditKey {
    pub app: AppId,
    pub environment: Environment,
    pub bucket: Bucket,
    pub network: &'static str,
    pub link: Option<LinkId>,
    pub campaign: String,
    pub adset: String,
    pub ad: String,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct NameKey {
    pub app: AppId,
    pub environment: Environment,
    pub bucket: Bucket,
    pub source: EventSource,
    pub name: String,
}

/// Where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct PlaceKey {
    pub app: AppId,
    pub environment: Environment,
    pub bucket: Bucket,
    pub country: String,
    pub platform: &'static str,
}

/// What a transaction adds to the roll-ups, sorted by key: everybody writes them in the same order, so that
/// two transactions never wait for each other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Increments {
    /// By who it is credited to.
    pub credits: BTreeMap<CreditKey, Figures>,
    /// By what happened.
    pub names: BTreeMap<NameKey, Figures>,
    /// By where.
    pub places: BTreeMap<PlaceKey, Figures>,
}

impl Increments {
    /// Counts a click, unless it was no person's. Clicks belong to no environment; they are production
    /// figures.
    pub fn add_click(&mut self, click: &Click) {
        if click.bot.is_some() {
            return;
        }
        let bucket = Bucket::of(click.clicked_at);
        let figures = Figures {
            clicks: 1,
            ..Figures::default()
        };
        let id = |text: &Option<String>| text.clone().unwrap_or_default();
        let campaign = click.campaign();
        let key = CreditKey {
            app: click.app,
            environment: Environment::Live,
            bucket,
            // As an install would be credited: a link of no network is somebody else's.
            network: click
                .network
                .map_or("other", crate::integration::Network::as_str),
            link: Some(click.link),
            campaign: id(&campaign.id),
            adset: id(&campaign.adset_id),
            ad: id(&campaign.ad_id),
        };
        self.credits.entry(key).or_default().add(&figures, 1);
        let key = PlaceKey {
            app: click.app,
            environment: Environment::Live,
            bucket,
            country: id(&click.country),
            platform: click.platform().as_str(),
        };
        self.places.entry(key).or_default().add(&figures, 1);
    }

    /// Counts an event.
    pub fn add_event(&mut self, event: &Event) {
        self.count(event, 1);
    }

    /// Moves an event that was counted to where it is credited now.
    pub fn move_event(&mut self, event: &mut Event, credit: &Credit) {
        self.count(event, -1);
        event.credit = Some(credit.clone());
        self.count(event, 1);
    }

    /// Counts an event that is no longer what it was counted as.
    pub fn replace_event(&mut self, before: &Event, now: &Event) {
        self.count(before, -1);
        self.count(now, 1);
    }

    /// Takes another transaction's increments along.
    pub fn merge(&mut self, other: Self) {
        for (key, figures) in other.credits {
            self.credits.entry(key).or_default().add(&figures, 1);
        }
        for (key, figures) in other.names {
            self.names.entry(key).or_default().add(&figures, 1);
        }
        for (key, figures) in other.places {
            self.places.entry(key).or_default().add(&figures, 1);
        }
    }

    fn count(&mut self, event: &Event, sign: i64) {
        let figures = Figures::of_event(event);
        let (app, environment) = (event.app, event.environment);
        let bucket = Bucket::of(event.occurred_at);
        let credit = event.credit.as_ref();
        let id = |pick: fn(&crate::link::Campaign) -> &Option<String>| {
            let found = credit.and_then(|credit| pick(&credit.campaign).clone());
            found.unwrap_or_default()
        };
        let key = CreditKey {
            app,
            environment,
            bucket,
            network: credit.map_or("", |credit| credit.network.as_str()),
            link: credit.and_then(|credit| credit.link),
            campaign: id(|campaign| &campaign.id),
            adset: id(|campaign| &campaign.adset_id),
            ad: id(|campaign| &campaign.ad_id),
        };
        self.credits.entry(key).or_default().add(&figures, sign);
        let key = NameKey {
            app,
            environment,
            bucket,
            source: event.source,
            name: event.name.clone(),
        };
        self.names.entry(key).or_default().add(&figures, sign);
        let key = PlaceKey {
            app,
            environment,
            bucket,
            country: event.country.clone().unwrap_or_default(),
            platform: event.platform.map_or("", crate::device::Platform::as_str),
        };
        self.places.entry(key).or_default().add(&figures, sign);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::{CreditedNetwork, MatchType};
    use crate::integration::Network;
    use crate::ledger::Revenue;
    use crate::link::Campaign;
    use crate::vocabulary::id::EventId;
    use crate::vocabulary::money::Amount;

    fn credit(network: CreditedNetwork, match_type: MatchType) -> Credit {
        Credit {
            network,
            match_type,
            link: None,
            click: None,
            campaign: Campaign::default(),
        }
    }

    fn event(name: &str) -> Event {
        Event {
            id: EventId::from_bytes([1; 16]),
            given_id: "e".to_owned(),
            app: AppId::from_bytes([2; 16]),
            environment: Environment::Live,
            source: EventSource::Sdk,
            name: name.to_owned(),
            original_name: None,
            occurred_at: Timestamp::from_millis(1_700_000_000_000),
            received_at: Timestamp::from_millis(1_700_000_000_000),
            device: None,
            user: None,
            platform: None,
            country: None,
            revenue: None,
            credit: Some(credit(CreditedNetwork::Organic, MatchType::Organic)),
            params: None,
            first_payment: false,
            own: false,
            skipped: Vec::new(),
        }
    }

    #[test]
    fn buckets_are_a_quarter_of_an_hour() {
        let bucket = |millis| {
            Bucket::of(Timestamp::from_millis(millis))
                .begins_at()
                .as_millis()
        };
        assert_eq!(bucket(0), 0);
        assert_eq!(bucket(899_999), 0);
        assert_eq!(bucket(900_000), 900_000);
        assert_eq!(bucket(-1), -900_000);
    }

    #[test]
    fn values_and_columns_agree() {
        let mut values = [0; Figures::COUNT];
        for (number, value) in (1..).zip(values.iter_mut()) {
            *value = number;
        }
        assert_eq!(Figures::from_values(values).values(), values);
    }

    #[test]
    fn only_the_services_own_install_is_an_install() {
        let sent = Figures::of_event(&event("install"));
        assert_eq!((sent.installs, sent.events), (0, 1));
        let own = Figures::of_event(&Event {
            own: true,
            ..event("install")
        });
        assert_eq!((own.installs, own.organic_installs), (1, 1));
    }

    #[test]
    fn uncounted_money_is_no_revenue() {
        let with = |uncounted| Event {
            revenue: Some(Revenue {
                amount: Amount::from_micros(5),
                currency: None,
                usd: Some(Amount::from_micros(5)),
                rate_day: None,
                rate: None,
                rate_source: None,
                uncounted,
            }),
            ..event("purchase")
        };
        assert_eq!(Figures::of_event(&with(None)).revenue_micros, 5);
        let over = with(Some(crate::ledger::Uncounted::OverLimit));
        assert_eq!(Figures::of_event(&over).revenue_micros, 0);
        assert_eq!(Figures::of_event(&over).purchases, 1);
    }

    #[test]
    fn a_moved_event_leaves_nothing_where_it_was() {
        let mut increments = Increments::default();
        let mut install = Event {
            own: true,
            ..event("install")
        };
        increments.add_event(&install);
        let to = credit(CreditedNetwork::Ad(Network::A), MatchType::ClickId);
        increments.move_event(&mut install, &to);
        let figures: Vec<_> = increments
            .credits
            .iter()
            .map(|(key, figures)| (key.network, figures.installs, figures.organic_installs))
            .collect();
        assert_eq!(figures, [("network_a", 1, 0), ("organic", 0, 0)]);
        assert!(
            increments
                .places
                .values()
                .all(|figures| figures.installs == 1)
        );
    }
}
