//! What is to become of a delivery that is due, before it is sent and after.

use super::held::Held;
use crate::round::Tried;
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::erasure::is_pseudonym;
use tributary_domain::forwarding::course::{
    self, ATTRIBUTION_CHANGED, CONSENT_WITHDRAWN, ERASED, INTERRUPTED, Next, Standing,
};
use tributary_domain::forwarding::delivery::kept;
use tributary_domain::forwarding::limits::expires_at;
use tributary_domain::forwarding::{Attempt, Conversion, DeliveryStatus, Verdict};
use tributary_domain::integration::{EventScope, Integration};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_networks::check;
use tributary_store::{Gathered, PendingDelivery, Settled};

/// Its event is gone.
const EVENT_GONE: &str = "event_gone";

/// A delivery on its way.
pub(super) struct Sending {
    pub(super) pending: PendingDelivery,
    standing: Standing,
}

pub(super) enum Prepared {
    Settled(Settled),
    Ready(Box<Sending>, Box<Conversion>),
}

impl Held<'_> {
    /// Looks at a delivery right before it is sent: whether it still may, and still can.
    pub(super) fn prepare(&self, gathered: Gathered, now: Timestamp) -> Prepared {
        let mut pending = gathered.pending;
        self.note_interruption(&mut pending);
        let Some(mut conversion) = gathered.conversion else {
            return over(pending, DeliveryStatus::Cancelled, EVENT_GONE);
        };
        if conversion.page_url.is_none() {
            let base = self.leased.app.link_base(&self.work.shared.parts.base_url);
            conversion.page_url = gathered.link.map(|link| link.url(&base));
        }
        // It was on its way when somebody erased it, or somebody brought it back since.
        if conversion.event.device.as_ref().is_some_and(is_pseudonym) {
            return over(pending, DeliveryStatus::Cancelled, ERASED);
        }
        if !belongs(&self.leased.integration, &conversion) {
            return over(pending, DeliveryStatus::Cancelled, ATTRIBUTION_CHANGED);
        }
        let standing = standing(&self.leased.integration, &pending, &conversion);
        if let Some(next) = course::before(&standing, now) {
            return Prepared::Settled(untouched(pending, next));
        }
        match check(self.account, &conversion) {
            Err(reason) if reason.code == "consent" => {
                over(pending, DeliveryStatus::Cancelled, CONSENT_WITHDRAWN)
            }
            Err(reason) => over(pending, DeliveryStatus::Failed, reason.code),
            Ok(()) => {
                let sending = Sending { pending, standing };
                Prepared::Ready(Box::new(sending), Box::new(conversion))
            }
        }
    }

    /// Somebody took it and never said what came of it: the network may have it.
    fn note_interruption(&self, pending: &mut PendingDelivery) {
        let Some(at) = pending.interrupted_at else {
            return;
        };
        if self.work.queue.network.dedup_window().is_some() {
            pending.ambiguous_since = pending.ambiguous_since.or(Some(at));
        }
        pending.attempts_made = pending.attempts_made.saturating_add(1);
        let attempt = Attempt {
            at,
            status: None,
            duration_ms: 0,
            verdict: Verdict::Unknown,
            answer: Some(INTERRUPTED.to_owned()),
            refusal: None,
        };
        pending.attempts = kept(std::mem::take(&mut pending.attempts), [attempt]);
    }

    pub(super) fn settled(&self, sending: Sending, tried: Tried) -> Settled {
        let Sending { pending, standing } = sending;
        let now = self.work.now();
        let Some(ruled) = tried.ruled else {
            let next = Next::Waits {
                due_at: now,
                ambiguous_since: standing.ambiguous_since,
            };
            let attempts = kept(pending.attempts.clone(), tried.attempts);
            return Settled {
                attempts,
                ..untouched(pending, next)
            };
        };
        let random = u64::from_be_bytes(self.work.shared.parts.source.bytes());
        let next = course::after(&standing, &ruled, tried.sent_at, now, random);
        Settled {
            id: pending.id,
            attempts_made: pending.attempts_made.saturating_add(1),
            attempts: kept(pending.attempts, tried.attempts),
            next,
        }
    }
}

/// Whether the event is still this network's. Its credit may have moved while it was on its way.
fn belongs(integration: &Integration, conversion: &Conversion) -> bool {
    let credited = conversion
        .event
        .credit
        .as_ref()
        .map(|credit| credit.network);
    integration.scope == EventScope::All
        || credited == Some(CreditedNetwork::Ad(integration.network))
}

fn standing(
    integration: &Integration,
    pending: &PendingDelivery,
    conversion: &Conversion,
) -> Standing {
    let occurred_at = conversion.event.told_at();
    Standing {
        network: integration.network,
        occurred_at,
        expires_at: expires_at(integration, occurred_at, conversion.clicked_at()),
        attempts_made: pending.attempts_made,
        ambiguous_since: pending.ambiguous_since,
    }
}

/// Without an attempt.
fn untouched(pending: PendingDelivery, next: Next) -> Settled {
    Settled {
        id: pending.id,
        attempts_made: pending.attempts_made,
        attempts: pending.attempts,
        next,
    }
}

fn over(pending: PendingDelivery, status: DeliveryStatus, reason: &str) -> Prepared {
    let next = Next::Ends {
        status,
        reason: Some(reason.to_owned()),
    };
    Prepared::Settled(untouched(pending, next))
}
