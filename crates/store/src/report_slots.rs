//! Slots for reports, log pages and exports, shared by the API and the dashboard.
//!
//! The rule is in [`tributary_domain::access::admission`]. This module lets a request wait for its
//! slot, and frees the slot when the request ends in any way, including a client that disconnects.

use crate::metrics;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tributary_domain::access::admission::{
    Admission, AdmissionLimits, SlotDecision, SlotHolder, SlotTicket,
};

/// How long a report waits for its slot. Longer than most reports run, and short enough that the
/// client does not send the request again meanwhile.
pub const SLOT_WAIT_MAX: Duration = Duration::from_secs(5);
/// Pause before an export asks again after it was rejected.
const PART_RETRY_PAUSE: Duration = Duration::from_millis(250);
/// `Retry-After` of a rejected report or log page, in seconds: by then, most running reports have ended.
const REPORT_RETRY_SECONDS: u64 = 2;
/// `Retry-After` of a rejected export, in seconds. Exports run for longer.
const EXPORT_RETRY_SECONDS: u64 = 15;

/// Kind of work that needs a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotKind {
    /// A report or one part of an export; in the API also one page of a list.
    Report,
    /// A page of the dashboard that reads one page of rows through an index. It has slots of its
    /// own, so that it does not wait for the same user's reports.
    Log,
    /// A whole export, for as long as the client reads it.
    Export,
}

impl SlotKind {
    /// Returns the name for metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Report => "report",
            Self::Log => "log",
            Self::Export => "export",
        }
    }
}

/// A request that got no slot: its organization or key has too many, or the wait was too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many concurrent {}s; retry after {} seconds", .kind.as_str(), .kind.retry_seconds())]
pub struct SlotRejection {
    /// What was requested.
    pub kind: SlotKind,
}

impl SlotKind {
    /// Returns the seconds after which a rejected request may be sent again.
    pub const fn retry_seconds(self) -> u64 {
        match self {
            Self::Report | Self::Log => REPORT_RETRY_SECONDS,
            Self::Export => EXPORT_RETRY_SECONDS,
        }
    }
}

/// Slots for reports, for log pages and for exports.
#[derive(Debug, Clone)]
pub struct ReportSlots {
    reports: Arc<SlotQueue>,
    logs: Arc<SlotQueue>,
    exports: Arc<SlotQueue>,
}

impl ReportSlots {
    /// Creates the slots with these limits.
    pub fn new(reports: AdmissionLimits, logs: AdmissionLimits, exports: AdmissionLimits) -> Self {
        Self {
            reports: SlotQueue::new(SlotKind::Report, reports),
            logs: SlotQueue::new(SlotKind::Log, logs),
            exports: SlotQueue::new(SlotKind::Export, exports),
        }
    }

    /// Creates slots without limits.
    pub fn unlimited() -> Self {
        let unlimited = AdmissionLimits::UNLIMITED;
        Self::new(unlimited, unlimited, unlimited)
    }

    /// Waits for a slot, at most [`SLOT_WAIT_MAX`].
    pub async fn admit(
        &self,
        kind: SlotKind,
        holder: SlotHolder,
    ) -> Result<ReportSlot, SlotRejection> {
        let queue = match kind {
            SlotKind::Report => &self.reports,
            SlotKind::Log => &self.logs,
            SlotKind::Export => &self.exports,
        };
        let admitted = queue.admit(holder, SLOT_WAIT_MAX).await;
        let outcome = match &admitted {
            Ok((_, false)) => "admitted",
            Ok((_, true)) => "queued",
            Err(_) => "rejected",
        };
        metrics::count_slot_request(kind.as_str(), outcome);
        admitted.map(|(slot, _)| slot)
    }

    /// Waits for a report slot for one part of a running export, at most `within`. An export waits
    /// longer than a report, because a rejection would break the file.
    pub async fn admit_part(
        &self,
        holder: &SlotHolder,
        within: Duration,
    ) -> Result<ReportSlot, SlotRejection> {
        let deadline = Instant::now() + within;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.reports.admit(holder.clone(), left).await {
                Err(_) if Instant::now() + PART_RETRY_PAUSE < deadline => {
                    tokio::time::sleep(PART_RETRY_PAUSE).await;
                }
                outcome => return outcome.map(|(slot, _)| slot),
            }
        }
    }
}

/// Slots of one kind and the requests that wait for them.
#[derive(Debug)]
struct SlotQueue {
    kind: SlotKind,
    /// A std mutex, because it is never held across an await.
    state: Mutex<SlotState>,
}

#[derive(Debug)]
struct SlotState {
    admission: Admission,
    /// Hands the slot to a waiting request. A dropped sender means rejected.
    waiting: HashMap<SlotTicket, (SlotHolder, oneshot::Sender<ReportSlot>)>,
}

impl SlotQueue {
    fn new(kind: SlotKind, limits: AdmissionLimits) -> Arc<Self> {
        let state = SlotState {
            admission: Admission::new(limits),
            waiting: HashMap::new(),
        };
        Arc::new(Self {
            kind,
            state: Mutex::new(state),
        })
    }

    fn lock(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a slot, and whether the request waited for it.
    async fn admit(
        self: &Arc<Self>,
        holder: SlotHolder,
        within: Duration,
    ) -> Result<(ReportSlot, bool), SlotRejection> {
        let rejection = SlotRejection { kind: self.kind };
        let (place, slot) = {
            let mut state = self.lock();
            let decision = state.admission.request(holder.clone());
            self.measure(&state);
            match decision {
                SlotDecision::Admitted => return Ok((self.slot(holder), false)),
                SlotDecision::Rejected => return Err(rejection),
                SlotDecision::Queued { ticket, displaced } => {
                    if let Some(displaced) = displaced {
                        state.waiting.remove(&displaced);
                    }
                    let (sender, slot) = oneshot::channel();
                    state.waiting.insert(ticket, (holder, sender));
                    let queue = self.clone();
                    (QueuePlace { queue, ticket }, slot)
                }
            }
        };
        let outcome = tokio::time::timeout(within, slot).await;
        drop(place);
        match outcome {
            Ok(Ok(slot)) => Ok((slot, true)),
            Ok(Err(_)) | Err(_) => Err(rejection),
        }
    }

    fn slot(self: &Arc<Self>, holder: SlotHolder) -> ReportSlot {
        ReportSlot {
            queue: self.clone(),
            holder,
        }
    }

    /// Frees a slot and hands it to the requests that run next.
    fn release(self: &Arc<Self>, holder: &SlotHolder) {
        let admitted: Vec<_> = {
            let mut state = self.lock();
            let tickets = state.admission.release(holder);
            self.measure(&state);
            let waiting = &mut state.waiting;
            let next = tickets.iter().filter_map(|ticket| waiting.remove(ticket));
            next.collect()
        };
        for (holder, sender) in admitted {
            // If the request has just stopped waiting, the slot comes back and is dropped. The lock
            // is free again, because dropping a slot takes it.
            drop(sender.send(self.slot(holder)));
        }
    }

    fn measure(&self, state: &SlotState) {
        let (running, waiting) = (state.admission.running(), state.admission.waiting());
        metrics::set_slots(self.kind.as_str(), running, waiting);
    }
}

/// A place in the queue. Dropping it leaves the queue: after admission, after too long a wait, and
/// when the client disconnects.
struct QueuePlace {
    queue: Arc<SlotQueue>,
    ticket: SlotTicket,
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.waiting.remove(&self.ticket);
        state.admission.abandon(self.ticket);
        self.queue.measure(&state);
    }
}

/// A slot. Dropping it admits the next waiting request.
#[derive(Debug)]
pub struct ReportSlot {
    queue: Arc<SlotQueue>,
    holder: SlotHolder,
}

impl Drop for ReportSlot {
    fn drop(&mut self) {
        self.queue.release(&self.holder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_domain::access::Actor;
    use tributary_domain::vocabulary::id::{KeyId, OrganizationId};

    const LIMITS: AdmissionLimits = AdmissionLimits {
        total: 2,
        per_organization: 1,
        per_key: 1,
        waiting: 2,
        waiting_per_organization: 1,
    };

    fn slots() -> ReportSlots {
        ReportSlots::new(LIMITS, LIMITS, LIMITS)
    }

    fn holder(organization: u8) -> SlotHolder {
        SlotHolder {
            organization: OrganizationId::from_bytes([organization; 16]),
            actor: Actor::Key(KeyId::from_bytes([1; 16])),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiting_request_gets_the_slot_that_is_freed() {
        let slots = slots();
        let first = slots.admit(SlotKind::Report, holder(1)).await.unwrap();
        let free = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(first);
        };
        let (second, ()) = tokio::join!(slots.admit(SlotKind::Report, holder(1)), free);
        assert!(second.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_waits_too_long_is_rejected_and_leaves_the_queue() {
        let slots = slots();
        let _running = slots.admit(SlotKind::Report, holder(1)).await.unwrap();
        let begun = Instant::now();
        let rejected = slots.admit(SlotKind::Report, holder(1)).await.unwrap_err();
        assert_eq!(rejected.kind, SlotKind::Report);
        assert_eq!(begun.elapsed(), SLOT_WAIT_MAX);
        assert_eq!(slots.reports.lock().admission.waiting(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_disconnects_leaves_the_queue() {
        let slots = slots();
        let running = slots.admit(SlotKind::Report, holder(1)).await.unwrap();
        let waiting = slots.admit(SlotKind::Report, holder(1));
        let second = Duration::from_secs(1);
        assert!(tokio::time::timeout(second, waiting).await.is_err());
        assert_eq!(slots.reports.lock().admission.waiting(), 0);
        drop(running);
        assert_eq!(slots.reports.lock().admission.running(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slot_granted_to_a_request_that_left_is_freed() {
        let slots = slots();
        let running = slots.admit(SlotKind::Report, holder(1)).await.unwrap();
        let waiting = tokio::spawn({
            let slots = slots.clone();
            async move { slots.admit(SlotKind::Report, holder(1)).await }
        });
        tokio::task::yield_now().await;
        drop(running);
        waiting.abort();
        drop(waiting.await);
        assert_eq!(slots.reports.lock().admission.running(), 0);
        assert!(slots.admit(SlotKind::Report, holder(1)).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn log_pages_do_not_wait_for_reports_of_the_same_user() {
        let slots = slots();
        let _report = slots.admit(SlotKind::Report, holder(1)).await.unwrap();
        let begun = Instant::now();
        let _log = slots.admit(SlotKind::Log, holder(1)).await.unwrap();
        assert_eq!(begun.elapsed(), Duration::ZERO);
        let rejected = slots.admit(SlotKind::Log, holder(1)).await.unwrap_err();
        assert_eq!(rejected.kind, SlotKind::Log);
    }

    #[tokio::test(start_paused = true)]
    async fn exports_have_slots_of_their_own_and_wait_for_each_part() {
        let slots = slots();
        let _export = slots.admit(SlotKind::Export, holder(1)).await.unwrap();
        let report = slots.admit(SlotKind::Report, holder(1)).await.unwrap();
        let free = async {
            tokio::time::sleep(SLOT_WAIT_MAX * 2).await;
            drop(report);
        };
        let holder = holder(1);
        let part = slots.admit_part(&holder, SLOT_WAIT_MAX * 3);
        let (part, ()) = tokio::join!(part, free);
        assert!(part.is_ok());
    }
}
