//! Rows of events.

use super::click::CampaignJson;
use super::columns::row;
use super::consent::{consent_from_code, consent_to_code};
use super::outbox::{skipped_from_json, skipped_to_json};
use super::{from_json, to_json};
use crate::StoreError;
use std::borrow::Cow;
use std::collections::HashMap;
use tributary_domain::access::Environment;
use tributary_domain::attribution::{CreditedNetwork, HoldState, MatchType};
use tributary_domain::device::{DeviceKey, Platform, UserKey};
use tributary_domain::event::{Credit, Event, EventSource, WebEventDetails};
use tributary_domain::ledger::{Revenue, UncountedReason};
use tributary_domain::link::Campaign;
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId, LinkId};
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::time::Timestamp;

/// SQL equivalent of [`Event::is_payment`].
pub const IS_PAYMENT: &str = "usd_micros > 0 and uncounted is null
     and (source <> 'billing' or name in ('purchase', 'subscribe', 'renewal'))";

/// Returns the stored reason why an event's amount does not count.
pub fn uncounted_reason(event: &Event) -> Option<&'static str> {
    event
        .revenue
        .as_ref()?
        .uncounted
        .map(UncountedReason::as_str)
}

row! {
    /// A row of `events`. Borrows its texts from the database row or from the event, to avoid
    /// copies.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct EventRow<'a> {
        pub app_id: [u8; 16],
        pub environment: &'a str,
        pub event_id: [u8; 16],
        pub given_id: &'a str,
        pub source: &'a str,
        pub name: &'a str,
        pub original_name: Option<&'a str>,
        pub occurred_at: i64,
        pub received_at: i64,
        pub device_id: Option<&'a str>,
        pub user_id: Option<&'a str>,
        pub platform: Option<&'a str>,
        pub country: Option<&'a str>,
        pub amount_micros: Option<i64>,
        pub currency: Option<&'a str>,
        pub usd_micros: Option<i64>,
        pub rate: Option<&'a str>,
        pub rate_day: Option<i32>,
        pub rate_source: Option<&'a str>,
        pub uncounted: Option<&'a str>,
        pub network: Option<&'a str>,
        pub match_type: Option<&'a str>,
        pub link_id: Option<[u8; 16]>,
        pub click_id: Option<[u8; 16]>,
        pub campaign: Option<Cow<'a, str>>,
        pub params: Option<&'a str>,
        pub first_payment: bool,
        pub own: bool,
        pub skipped: Option<Cow<'a, str>>,
        pub source_url: Option<&'a str>,
        pub parent_given_id: Option<&'a str>,
        pub email_sha256: Option<&'a str>,
        pub duplicate_of: Option<[u8; 16]>,
        pub dedup_root: Option<[u8; 16]>,
        /// Only set for web events; other events use the spelling stored with their device.
        pub device_spelling: Option<&'a str>,
        pub hold: Option<&'a str>,
        pub consent: Option<Cow<'a, str>>,
    }
}

/// Parsed campaigns of events that are read together. Many events share a few campaigns, and
/// cloning a campaign is faster than parsing its JSON.
#[derive(Debug, Default)]
pub struct CampaignCache(HashMap<String, Campaign>);

/// Maximum number of cached campaigns: more than an app runs at a time.
const CAMPAIGNS_MAX: usize = 2_000;

impl CampaignCache {
    fn read(&mut self, id: EventId, text: &str) -> Result<Campaign, StoreError> {
        if let Some(cached) = self.0.get(text) {
            return Ok(cached.clone());
        }
        let read = read_campaign(id, text)?;
        if self.0.len() < CAMPAIGNS_MAX {
            self.0.insert(text.to_owned(), read.clone());
        }
        Ok(read)
    }
}

/// Reads a campaign; `None` if the text is unreadable.
pub(super) fn campaign_from_json(text: &str) -> Option<Campaign> {
    let read: CampaignJson<'_> = serde_json::from_str(text).ok()?;
    Some(read.into())
}

fn read_campaign(id: EventId, text: &str) -> Result<Campaign, StoreError> {
    let read: CampaignJson<'_> = from_json("events", "campaign", id, text)?;
    Ok(read.into())
}

/// Columns of an event's credit.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "columns")]
pub struct CreditColumns {
    pub network: String,
    pub match_type: String,
    pub link_id: Option<[u8; 16]>,
    pub click_id: Option<[u8; 16]>,
    pub campaign: String,
    pub hold: Option<&'static str>,
}

impl CreditColumns {
    /// Converts a credit to columns.
    pub fn write(credit: &Credit) -> Self {
        Self {
            network: credit.network.as_str().to_owned(),
            match_type: credit.match_type.as_str().to_owned(),
            link_id: credit.link.map(|link| *link.as_bytes()),
            click_id: credit.click.map(|click| *click.as_bytes()),
            campaign: to_json(&CampaignJson::from(&credit.campaign)),
            hold: credit.hold.map(HoldState::as_str),
        }
    }
}

impl<'a> EventRow<'a> {
    /// Converts an event to columns.
    pub fn write(event: &'a Event) -> Self {
        let revenue = event.revenue.as_ref();
        let credit = event.credit.as_ref();
        let website = event.website.as_deref();
        Self {
            app_id: *event.app.as_bytes(),
            environment: event.environment.as_str(),
            event_id: *event.id.as_bytes(),
            given_id: &event.external_id,
            source: event.source.as_str(),
            name: &event.name,
            original_name: event.original_name.as_deref(),
            occurred_at: event.occurred_at.as_millis(),
            received_at: event.received_at.as_millis(),
            device_id: event.device.as_ref().map(DeviceKey::as_str),
            user_id: event.user.as_ref().map(UserKey::as_str),
            platform: event.platform.map(Platform::as_str),
            country: event.country.as_deref(),
            amount_micros: revenue.map(|revenue| revenue.amount.micros()),
            currency: revenue
                .and_then(|revenue| revenue.currency.as_ref())
                .map(Currency::as_str),
            usd_micros: revenue.and_then(|revenue| revenue.usd).map(Amount::micros),
            rate: revenue.and_then(|revenue| revenue.rate.as_deref()),
            rate_day: revenue
                .and_then(|revenue| revenue.rate_day)
                .map(Day::as_days),
            rate_source: revenue.and_then(|revenue| revenue.rate_source.as_deref()),
            uncounted: uncounted_reason(event),
            network: credit.map(|credit| credit.network.as_str()),
            match_type: credit.map(|credit| credit.match_type.as_str()),
            link_id: credit
                .and_then(|credit| credit.link)
                .map(|id| *id.as_bytes()),
            click_id: credit
                .and_then(|credit| credit.click)
                .map(|id| *id.as_bytes()),
            campaign: credit.map(|credit| to_json(&CampaignJson::from(&credit.campaign)).into()),
            params: event.params.as_deref(),
            first_payment: event.first_payment,
            own: event.is_service_install,
            skipped: skipped_to_json(&event.skipped).map(Cow::Owned),
            source_url: website.map(|website| website.source_url.as_str()),
            parent_given_id: website.and_then(|website| website.parent.as_deref()),
            email_sha256: website.and_then(|website| website.email_sha256.as_deref()),
            duplicate_of: event.duplicate_of.map(|id| *id.as_bytes()),
            dedup_root: event.dedup_root.map(|id| *id.as_bytes()),
            device_spelling: website.and_then(|_| event.device.as_ref()?.other_spelling()),
            hold: event.hold().map(HoldState::as_str),
            consent: event.consent.map(consent_to_code),
        }
    }

    /// Reads the event.
    pub fn read(self) -> Result<Event, StoreError> {
        self.read_by(read_campaign)
    }

    /// Reads the event, reusing parsed campaigns from the cache.
    pub fn read_cached(self, campaigns: &mut CampaignCache) -> Result<Event, StoreError> {
        self.read_by(|id, text| campaigns.read(id, text))
    }

    fn read_by(
        self,
        campaign: impl FnOnce(EventId, &str) -> Result<Campaign, StoreError>,
    ) -> Result<Event, StoreError> {
        let id = EventId::from_bytes(self.event_id);
        let corrupt = |column| StoreError::corrupt("events", column, id);
        let (revenue, credit) = (self.revenue(id)?, self.credit(id, campaign)?);
        let skipped = skipped_from_json(id, self.skipped.as_deref())?;
        let platform = self.platform.map(|text| {
            let known = Platform::parse(text);
            known.ok_or_else(|| corrupt("platform"))
        });
        let consent = self.consent.as_deref().map(|code| {
            let known = consent_from_code(code);
            known.ok_or_else(|| corrupt("consent"))
        });
        let consent = consent.transpose()?;
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let website = self.source_url.map(|source_url| WebEventDetails {
            source_url: source_url.to_owned(),
            parent: owned(self.parent_given_id),
            email_sha256: owned(self.email_sha256),
        });
        Ok(Event {
            id,
            external_id: self.given_id.to_owned(),
            app: AppId::from_bytes(self.app_id),
            environment: Environment::parse(self.environment)
                .ok_or_else(|| corrupt("environment"))?,
            source: EventSource::parse(self.source).ok_or_else(|| corrupt("source"))?,
            name: self.name.to_owned(),
            original_name: owned(self.original_name),
            occurred_at: Timestamp::from_millis(self.occurred_at),
            received_at: Timestamp::from_millis(self.received_at),
            device: owned(self.device_id)
                .map(|id| DeviceKey::stored_as(id, owned(self.device_spelling))),
            user: owned(self.user_id).map(UserKey::stored),
            platform: platform.transpose()?,
            country: owned(self.country),
            revenue,
            credit,
            params: owned(self.params),
            first_payment: self.first_payment,
            is_service_install: self.own,
            duplicate_of: self.duplicate_of.map(EventId::from_bytes),
            dedup_root: self.dedup_root.map(EventId::from_bytes),
            consent,
            skipped,
            website: website.map(Box::new),
        })
    }

    fn revenue(&self, id: EventId) -> Result<Option<Revenue>, StoreError> {
        let corrupt = |column| StoreError::corrupt("events", column, id);
        let Some(amount) = self.amount_micros else {
            return Ok(None);
        };
        let currency = self.currency.map(|text| {
            let known = Currency::from_stored(text);
            known.ok_or_else(|| corrupt("currency"))
        });
        let uncounted = self.uncounted.map(|text| {
            let known = UncountedReason::parse_stored(text, self.name, Amount::from_micros(amount));
            known.ok_or_else(|| corrupt("uncounted"))
        });
        Ok(Some(Revenue {
            amount: Amount::from_micros(amount),
            currency: currency.transpose()?,
            usd: self.usd_micros.map(Amount::from_micros),
            rate_day: self.rate_day.map(Day::from_days),
            rate: self.rate.map(str::to_owned),
            rate_source: self.rate_source.map(str::to_owned),
            uncounted: uncounted.transpose()?,
        }))
    }

    fn credit(
        &self,
        id: EventId,
        read_campaign: impl FnOnce(EventId, &str) -> Result<Campaign, StoreError>,
    ) -> Result<Option<Credit>, StoreError> {
        let corrupt = |column| StoreError::corrupt("events", column, id);
        let (Some(network), Some(match_type), Some(campaign)) =
            (self.network, self.match_type, &self.campaign)
        else {
            return Ok(None);
        };
        Ok(Some(Credit {
            network: CreditedNetwork::parse(network).ok_or_else(|| corrupt("network"))?,
            match_type: MatchType::parse(match_type).ok_or_else(|| corrupt("match_type"))?,
            link: self.link_id.map(LinkId::from_bytes),
            click: self.click_id.map(ClickId::from_bytes),
            campaign: read_campaign(id, campaign)?,
            hold: match self.hold {
                Some(text) => Some(HoldState::parse(text).ok_or_else(|| corrupt("hold"))?),
                None => None,
            },
        }))
    }
}
