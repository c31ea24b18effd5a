//! What a device did, as cohorts count it.

use crate::access::Environment;
use crate::device::DeviceKey;
use crate::event::{CREDITED_TO_ITS_OWN_CLICK, Credit, Event};
use crate::report::Figures;
use crate::vocabulary::id::{AppId, LinkId};
use crate::vocabulary::time::Timestamp;

/// A device of an app.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct Member {
    pub app: AppId,
    pub environment: Environment,
    pub device: DeviceKey,
}

/// What a cohort's installs are credited to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct CohortCredit {
    pub network: &'static str,
    pub link: Option<LinkId>,
    pub campaign: String,
}

impl From<&Credit> for CohortCredit {
    fn from(credit: &Credit) -> Self {
        Self {
            network: credit.network.as_str(),
            link: credit.link,
            campaign: credit.campaign.id.clone().unwrap_or_default(),
        }
    }
}

/// Something that a device did, as cohorts count it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CohortEntry {
    /// Which device.
    pub member: Member,
    /// When.
    pub at: Timestamp,
    /// Where; empty where that is not known.
    pub country: String,
    /// Whether it is the install itself.
    pub is_install: bool,
    /// What it brought.
    pub revenue_micros: i64,
    /// What was given back.
    pub refunded_micros: i64,
    /// What it was counted under before; nothing when it is new here.
    pub from: Option<CohortCredit>,
    /// What it counts under now; nothing when it is no longer the device's.
    pub to: Option<CohortCredit>,
}

impl CohortEntry {
    /// An event, where it belongs to an install.
    pub fn of(event: &Event) -> Option<Self> {
        let credit = event.credit.as_ref()?;
        let device = event.device.clone()?;
        if event.source == CREDITED_TO_ITS_OWN_CLICK {
            return None;
        }
        let figures = Figures::of_event(event);
        Some(Self {
            member: Member {
                app: event.app,
                environment: event.environment,
                device,
            },
            at: event.occurred_at,
            country: event.country.clone().unwrap_or_default(),
            is_install: event.is_install(),
            revenue_micros: figures.revenue_micros,
            refunded_micros: figures.refunded_micros,
            from: None,
            to: Some(credit.into()),
        })
    }

    /// The same event when it was credited elsewhere before.
    #[must_use]
    pub fn moved(self, from: Option<Credit>) -> Self {
        Self {
            from: from.as_ref().map(CohortCredit::from),
            ..self
        }
    }

    /// An event that is no longer what it was counted as, be it by its device, its credit or its money.
    pub fn replaced(before: &Event, now: &Event) -> impl Iterator<Item = Self> {
        let (before, now) = (Self::of(before), Self::of(now));
        let differs = before != now;
        let pair = before.map(Self::left).into_iter().chain(now);
        pair.filter(move |_| differs)
    }

    /// An event that is no longer there.
    pub(crate) fn removed(event: &Event) -> Option<Self> {
        Self::of(event).map(Self::left)
    }

    /// The same event when it is no longer the device's.
    fn left(self) -> Self {
        Self {
            from: self.to,
            to: None,
            ..self
        }
    }

    pub(super) const fn is_first(&self) -> bool {
        self.is_install && self.from.is_none()
    }
}
