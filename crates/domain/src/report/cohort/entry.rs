//! What a device did, as cohorts count it.

use crate::access::Environment;
use crate::device::DeviceKey;
use crate::event::{Credit, Event, SELF_CREDITED_SOURCE};
use crate::report::Figures;
use crate::vocabulary::id::{AppId, LinkId};
use crate::vocabulary::time::Timestamp;

/// A device of an app.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct CohortMember {
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
    pub member: CohortMember,
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
    pub old_credit: Option<CohortCredit>,
    /// What it counts under now; nothing when it is no longer the device's.
    pub new_credit: Option<CohortCredit>,
}

impl CohortEntry {
    /// An event, where it belongs to an install.
    pub fn of(event: &Event) -> Option<Self> {
        let credit = event.credit.as_ref()?;
        let device = event.device.clone()?;
        if event.source == SELF_CREDITED_SOURCE {
            return None;
        }
        let figures = Figures::of_event(event);
        Some(Self {
            member: CohortMember {
                app: event.app,
                environment: event.environment,
                device,
            },
            at: event.occurred_at,
            country: event.country.clone().unwrap_or_default(),
            is_install: event.is_install(),
            revenue_micros: figures.revenue_micros,
            refunded_micros: figures.refunded_micros,
            old_credit: None,
            new_credit: Some(credit.into()),
        })
    }

    /// The same event when it was credited elsewhere before.
    #[must_use]
    pub fn moved_from(self, from: Option<Credit>) -> Self {
        Self {
            old_credit: from.as_ref().map(CohortCredit::from),
            ..self
        }
    }

    /// An event that is no longer what it was counted as, be it by its device, its credit or its money.
    pub fn for_replacement(before: &Event, now: &Event) -> impl Iterator<Item = Self> {
        let (before, now) = (Self::of(before), Self::of(now));
        let differs = before != now;
        let pair = before.map(Self::left).into_iter().chain(now);
        pair.filter(move |_| differs)
    }

    /// An event that is no longer there.
    pub(crate) fn for_removal(event: &Event) -> Option<Self> {
        Self::of(event).map(Self::left)
    }

    /// The same event when it is no longer the device's.
    fn left(self) -> Self {
        Self {
            old_credit: self.new_credit,
            new_credit: None,
            ..self
        }
    }

    pub(super) const fn is_first_install(&self) -> bool {
        self.is_install && self.old_credit.is_none()
    }
}
