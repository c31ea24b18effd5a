//! Events, as rows.

use super::click::CampaignJson;
use super::outbox::{skipped_from_json, skipped_to_json};
use super::{from_json, to_json};
use crate::StoreError;
use tributary_domain::access::Environment;
use tributary_domain::attribution::{CreditedNetwork, MatchType};
use tributary_domain::device::{DeviceKey, Platform, UserKey};
use tributary_domain::event::{Credit, Event, EventSource, Website};
use tributary_domain::exchange::Day;
use tributary_domain::ledger::{Revenue, Uncounted};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId, LinkId};
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::time::Timestamp;

/// A row of `events`: with texts of its own as it is read, with an entity's as it is written.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "columns")]
pub struct EventRow<Text = String> {
    pub app_id: [u8; 16],
    pub environment: Text,
    pub event_id: [u8; 16],
    pub given_id: Text,
    pub source: Text,
    pub name: Text,
    pub original_name: Option<Text>,
    pub occurred_at: i64,
    pub received_at: i64,
    pub device_id: Option<Text>,
    pub user_id: Option<Text>,
    pub platform: Option<Text>,
    pub country: Option<Text>,
    pub amount_micros: Option<i64>,
    pub currency: Option<Text>,
    pub usd_micros: Option<i64>,
    pub rate: Option<Text>,
    pub rate_day: Option<i32>,
    pub rate_source: Option<Text>,
    pub uncounted: Option<Text>,
    pub network: Option<Text>,
    pub match_type: Option<Text>,
    pub link_id: Option<[u8; 16]>,
    pub click_id: Option<[u8; 16]>,
    pub campaign: Option<String>,
    pub params: Option<Text>,
    pub first_payment: bool,
    pub own: bool,
    pub skipped: Option<String>,
    pub source_url: Option<Text>,
    pub parent_given_id: Option<Text>,
    pub email_sha256: Option<Text>,
}

/// The columns that say what an event is credited to.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "columns")]
pub struct CreditColumns {
    pub network: String,
    pub match_type: String,
    pub link_id: Option<[u8; 16]>,
    pub click_id: Option<[u8; 16]>,
    pub campaign: String,
}

impl CreditColumns {
    /// The columns of a credit.
    pub fn write(credit: &Credit) -> Self {
        Self {
            network: credit.network.as_str().to_owned(),
            match_type: credit.match_type.as_str().to_owned(),
            link_id: credit.link.map(|link| *link.as_bytes()),
            click_id: credit.click.map(|click| *click.as_bytes()),
            campaign: to_json(&CampaignJson::from(&credit.campaign)),
        }
    }
}

impl<'a> EventRow<&'a str> {
    /// The columns of an entity.
    pub fn write(event: &'a Event) -> Self {
        let revenue = event.revenue.as_ref();
        let credit = event.credit.as_ref();
        let website = event.website.as_deref();
        Self {
            app_id: *event.app.as_bytes(),
            environment: event.environment.as_str(),
            event_id: *event.id.as_bytes(),
            given_id: &event.given_id,
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
            uncounted: revenue
                .and_then(|revenue| revenue.uncounted)
                .map(Uncounted::as_str),
            network: credit.map(|credit| credit.network.as_str()),
            match_type: credit.map(|credit| credit.match_type.as_str()),
            link_id: credit
                .and_then(|credit| credit.link)
                .map(|id| *id.as_bytes()),
            click_id: credit
                .and_then(|credit| credit.click)
                .map(|id| *id.as_bytes()),
            campaign: credit.map(|credit| to_json(&CampaignJson::from(&credit.campaign))),
            params: event.params.as_deref(),
            first_payment: event.first_payment,
            own: event.own,
            skipped: skipped_to_json(&event.skipped),
            source_url: website.map(|website| website.source_url.as_str()),
            parent_given_id: website.and_then(|website| website.parent.as_deref()),
            email_sha256: website.and_then(|website| website.email_sha256.as_deref()),
        }
    }
}

impl EventRow {
    /// The entity.
    pub fn read(self) -> Result<Event, StoreError> {
        let id = EventId::from_bytes(self.event_id);
        let corrupt = |column| StoreError::corrupt("events", column, id);
        let (revenue, credit) = (self.revenue(id)?, self.credit(id)?);
        let skipped = skipped_from_json(id, self.skipped.as_deref())?;
        let platform = self.platform.map(|text| {
            let known = Platform::parse(&text);
            known.ok_or_else(|| corrupt("platform"))
        });
        let (parent, email_sha256) = (self.parent_given_id, self.email_sha256);
        let website = self.source_url.map(|source_url| Website {
            source_url,
            parent,
            email_sha256,
        });
        Ok(Event {
            id,
            given_id: self.given_id,
            app: AppId::from_bytes(self.app_id),
            environment: Environment::parse(&self.environment)
                .ok_or_else(|| corrupt("environment"))?,
            source: EventSource::parse(&self.source).ok_or_else(|| corrupt("source"))?,
            name: self.name,
            original_name: self.original_name,
            occurred_at: Timestamp::from_millis(self.occurred_at),
            received_at: Timestamp::from_millis(self.received_at),
            device: self.device_id.map(DeviceKey::stored),
            user: self.user_id.map(UserKey::stored),
            platform: platform.transpose()?,
            country: self.country,
            revenue,
            credit,
            params: self.params,
            first_payment: self.first_payment,
            own: self.own,
            skipped,
            website: website.map(Box::new),
        })
    }

    fn revenue(&self, id: EventId) -> Result<Option<Revenue>, StoreError> {
        let corrupt = |column| StoreError::corrupt("events", column, id);
        let Some(amount) = self.amount_micros else {
            return Ok(None);
        };
        let currency = self.currency.as_deref().map(|text| {
            let known = Currency::stored(text);
            known.ok_or_else(|| corrupt("currency"))
        });
        let uncounted = self.uncounted.as_deref().map(|text| {
            let known = Uncounted::parse(text);
            known.ok_or_else(|| corrupt("uncounted"))
        });
        Ok(Some(Revenue {
            amount: Amount::from_micros(amount),
            currency: currency.transpose()?,
            usd: self.usd_micros.map(Amount::from_micros),
            rate_day: self.rate_day.map(Day::from_days),
            rate: self.rate.clone(),
            rate_source: self.rate_source.clone(),
            uncounted: uncounted.transpose()?,
        }))
    }

    fn credit(&self, id: EventId) -> Result<Option<Credit>, StoreError> {
        let corrupt = |column| StoreError::corrupt("events", column, id);
        let (Some(network), Some(match_type), Some(campaign)) =
            (&self.network, &self.match_type, &self.campaign)
        else {
            return Ok(None);
        };
        let campaign: CampaignJson = from_json("events", "campaign", id, campaign)?;
        Ok(Some(Credit {
            network: CreditedNetwork::parse(network).ok_or_else(|| corrupt("network"))?,
            match_type: MatchType::parse(match_type).ok_or_else(|| corrupt("match_type"))?,
            link: self.link_id.map(LinkId::from_bytes),
            click: self.click_id.map(ClickId::from_bytes),
            campaign: campaign.into(),
        }))
    }
}
