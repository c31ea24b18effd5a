//! Device activity, as counted in cohorts.

use crate::access::Environment;
use crate::attribution::HoldState;
use crate::device::DeviceKey;
use crate::event::{Credit, Event, SELF_CREDITED_SOURCE};
use crate::report::Figures;
use crate::vocabulary::id::{AppId, LinkId};
use crate::vocabulary::time::Timestamp;

/// An app's device; the key of its cohort record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "columns of the key")]
pub struct CohortMember {
    pub app: AppId,
    pub environment: Environment,
    pub device: DeviceKey,
}

/// Credit of a cohort's installs.
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

/// An event from a device, as counted in cohorts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CohortEntry {
    /// The device.
    pub member: CohortMember,
    /// Time of the event.
    pub at: Timestamp,
    /// Country; empty if unknown.
    pub country: String,
    /// Whether this is the install.
    pub is_install: bool,
    /// Revenue in millionths of a US dollar.
    pub revenue_micros: i64,
    /// Refunds in millionths of a US dollar.
    pub refunded_micros: i64,
    /// Credit that the event was counted under before; `None` if the event is new.
    pub old_credit: Option<CohortCredit>,
    /// Credit that the event counts under now; `None` if the event no longer belongs to the device.
    pub new_credit: Option<CohortCredit>,
}

impl CohortEntry {
    /// Returns the entry for an event; `None` if the event does not belong to an install that
    /// counts.
    pub fn of(event: &Event) -> Option<Self> {
        let credit = event.credit.as_ref()?;
        let device = event.device.clone()?;
        let is_withheld = credit.hold.is_some_and(HoldState::withholds);
        if event.source == SELF_CREDITED_SOURCE || is_withheld {
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

    /// Returns the entry for an event whose credit changed. An event that starts or stops to count,
    /// because its install is released or held, is added or removed.
    pub(crate) fn for_move(before: Option<Self>, now: Option<Self>) -> Option<Self> {
        match (before, now) {
            (Some(before), Some(now)) => Some(Self {
                old_credit: before.new_credit,
                ..now
            }),
            (Some(before), None) => Some(before.without_new_credit()),
            (None, now) => now,
        }
    }

    /// Returns the entries that replace a counted event whose device, credit or amount changed.
    pub fn for_replacement(before: &Event, now: &Event) -> impl Iterator<Item = Self> {
        let (before, now) = (Self::of(before), Self::of(now));
        let differs = before != now;
        let pair = before.map(Self::without_new_credit).into_iter().chain(now);
        pair.filter(move |_| differs)
    }

    /// Returns the entry that removes a deleted event.
    pub(crate) fn for_removal(event: &Event) -> Option<Self> {
        Self::of(event).map(Self::without_new_credit)
    }

    /// Turns the entry into one that removes the event from the device.
    fn without_new_credit(self) -> Self {
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
