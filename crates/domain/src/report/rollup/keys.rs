//! Keys of roll-up rows.

use crate::access::Environment;
use crate::event::EventSource;
use crate::report::grain::{Bucket, Grain};
use crate::vocabulary::id::{AppId, LinkId};
use crate::vocabulary::time::Timestamp;

/// App, environment and time bucket of a roll-up row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct BucketKey {
    pub app: AppId,
    pub environment: Environment,
    pub grain: Grain,
    pub bucket: Bucket,
}

impl BucketKey {
    /// Returns the quarter-hour bucket that contains `moment`.
    pub const fn of(app: AppId, environment: Environment, moment: Timestamp) -> Self {
        Self {
            app,
            environment,
            grain: Grain::Quarter,
            bucket: Bucket::of(moment),
        }
    }

    /// Returns the longer bucket that contains this one.
    #[must_use]
    pub const fn within(self, grain: Grain) -> Self {
        Self {
            grain,
            bucket: self.bucket.within(grain),
            ..self
        }
    }
}

/// Key by credited network.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct NetworkKey {
    pub at: BucketKey,
    pub network: &'static str,
}

/// Key by network, link and campaign. Absent texts are empty, because key columns are not nullable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct CampaignKey {
    pub at: BucketKey,
    pub network: &'static str,
    pub link: Option<LinkId>,
    pub campaign: String,
}

/// Key by full credit, down to the ad. Absent texts are empty, because key columns are not
/// nullable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct CreditKey {
    pub at: BucketKey,
    pub network: &'static str,
    pub link: Option<LinkId>,
    pub campaign: String,
    pub adset: String,
    pub ad: String,
}

/// Key by event name and source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct NameKey {
    pub at: BucketKey,
    pub source: EventSource,
    pub name: String,
}

/// Key by country and platform.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct PlaceKey {
    pub at: BucketKey,
    pub country: String,
    pub platform: &'static str,
}

/// Key by network, campaign, country and platform. Absent texts are empty, because key columns are
/// not nullable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct PivotKey {
    pub at: BucketKey,
    pub network: &'static str,
    pub campaign: String,
    pub country: String,
    pub platform: &'static str,
}

impl NetworkKey {
    /// Returns the network of a credit.
    pub(super) fn of(credit: &CreditKey) -> Self {
        Self {
            at: credit.at,
            network: credit.network,
        }
    }
}

impl CampaignKey {
    /// Drops the ad set and ad from a credit.
    pub(super) fn of(credit: &CreditKey) -> Self {
        Self {
            at: credit.at,
            network: credit.network,
            link: credit.link,
            campaign: credit.campaign.clone(),
        }
    }
}

impl PivotKey {
    /// Combines the credit and the place of a click or an event.
    pub(super) fn of(credit: &CreditKey, place: &PlaceKey) -> Self {
        Self {
            at: credit.at,
            network: credit.network,
            campaign: credit.campaign.clone(),
            country: place.country.clone(),
            platform: place.platform,
        }
    }
}
