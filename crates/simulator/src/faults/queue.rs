//! Queue that decides which fault applies to a request.

use super::{EventRejectionRule, FaultInjection, SimulatedFault};
use crate::network::{Endpoint, SimulatedNetwork};
use serde_json::{Value, json};

/// Maximum number of active faults.
const FAULTS_MAX: usize = 1_000;

/// A fault that is not used up.
#[derive(Debug, Clone)]
pub(crate) struct ActiveFault {
    pub(crate) number: u64,
    pub(crate) injection: FaultInjection,
}

impl ActiveFault {
    pub(crate) fn to_json(&self) -> Value {
        let injection = &self.injection;
        json!({
            "id": self.number,
            "network": injection.network,
            "account": injection.account,
            "endpoint": injection.endpoint,
            "fault": injection.fault,
            "remaining": injection.times,
        })
    }

    fn is_for(&self, network: SimulatedNetwork, endpoint: Endpoint) -> bool {
        self.injection.network == network && self.injection.endpoint == endpoint
    }

    fn is_account(&self, account: Option<&str>) -> bool {
        self.injection.account.is_none() || self.injection.account.as_deref() == account
    }
}

/// Result of picking a fault before the body of a request has been read.
#[derive(Debug)]
pub(crate) enum EarlyPick {
    /// This fault applies and counts as used.
    Taken(SimulatedFault),
    /// There is no fault that can be picked before the body is read.
    Later,
}

#[derive(Debug, Default)]
pub(crate) struct FaultQueue {
    active: Vec<ActiveFault>,
    last: u64,
}

impl FaultQueue {
    /// Adds a fault, or returns why it is invalid.
    pub(crate) fn add(&mut self, injection: FaultInjection) -> Result<u64, &'static str> {
        if self.active.len() >= FAULTS_MAX {
            return Err("too many faults; clear some");
        }
        if injection.times == Some(0) {
            return Err("times must be 1 or more, or null");
        }
        self.last += 1;
        let number = self.last;
        self.active.push(ActiveFault { number, injection });
        Ok(number)
    }

    pub(crate) fn clear(&mut self, network: Option<SimulatedNetwork>) {
        self.active
            .retain(|one| network.is_some_and(|network| one.injection.network != network));
    }

    pub(crate) fn active(&self) -> &[ActiveFault] {
        &self.active
    }

    /// Picks a fault before the body is read. Only `reset_before` applies here, and only if it is
    /// the next fault in the queue.
    pub(crate) fn pick_early(
        &mut self,
        network: SimulatedNetwork,
        endpoint: Endpoint,
        account: Option<&str>,
    ) -> EarlyPick {
        let first = self.active.iter().position(|one| {
            one.is_for(network, endpoint)
                && one.injection.fault.takes_turns()
                && (account.is_none() || one.is_account(account))
        });
        let Some(position) = first else {
            return EarlyPick::Later;
        };
        let one = &self.active[position];
        let is_reset = matches!(one.injection.fault, SimulatedFault::ResetBefore {});
        if is_reset && one.is_account(account) {
            return EarlyPick::Taken(self.take_at(position));
        }
        EarlyPick::Later
    }

    /// Picks the next fault in the queue.
    pub(crate) fn pick(
        &mut self,
        network: SimulatedNetwork,
        endpoint: Endpoint,
        account: Option<&str>,
    ) -> Option<SimulatedFault> {
        self.pick_where(network, endpoint, account, SimulatedFault::takes_turns)
    }

    /// Returns the usage to report for `network_a`.
    pub(crate) fn usage(&mut self, account: &str) -> Option<(u32, u32)> {
        let is_usage = |fault: &SimulatedFault| matches!(fault, SimulatedFault::Usage { .. });
        let (network, endpoint) = (SimulatedNetwork::NetworkA, Endpoint::Events);
        match self.pick_where(network, endpoint, Some(account), is_usage)? {
            SimulatedFault::Usage {
                percent,
                regain_minutes,
            } => Some((percent, regain_minutes)),
            _ => None,
        }
    }

    /// Returns the request status to report for `network_b`.
    pub(crate) fn request_status(&mut self, account: &str) -> Option<SimulatedFault> {
        let is_status =
            |fault: &SimulatedFault| matches!(fault, SimulatedFault::RequestStatus { .. });
        // The request status has only one endpoint, so this fault is also accepted if it was
        // injected for the default endpoint.
        self.pick_where(
            SimulatedNetwork::NetworkB,
            Endpoint::Status,
            Some(account),
            is_status,
        )
        .or_else(|| {
            self.pick_where(
                SimulatedNetwork::NetworkB,
                Endpoint::Events,
                Some(account),
                is_status,
            )
        })
    }

    /// Returns the rules for rejecting events.
    pub(crate) fn poisons(
        &self,
        network: SimulatedNetwork,
        account: &str,
    ) -> Vec<EventRejectionRule> {
        self.active
            .iter()
            .filter(|one| one.injection.network == network && one.is_account(Some(account)))
            .filter_map(|one| match &one.injection.fault {
                SimulatedFault::Poison {
                    ids,
                    prefix,
                    index,
                    partial,
                    path,
                } => Some(EventRejectionRule {
                    ids: ids.clone(),
                    prefix: prefix.clone(),
                    names_index: *index,
                    is_partial: *partial,
                    by_path: *path,
                    number: one.number,
                }),
                _ => None,
            })
            .collect()
    }

    /// Counts a rule as used once.
    pub(crate) fn mark_used(&mut self, poison: &EventRejectionRule) {
        let position = self
            .active
            .iter()
            .position(|one| one.number == poison.number);
        if let Some(position) = position {
            self.take_at(position);
        }
    }

    fn pick_where(
        &mut self,
        network: SimulatedNetwork,
        endpoint: Endpoint,
        account: Option<&str>,
        is_meant: fn(&SimulatedFault) -> bool,
    ) -> Option<SimulatedFault> {
        let position = self.active.iter().position(|one| {
            one.is_for(network, endpoint)
                && is_meant(&one.injection.fault)
                && one.is_account(account)
        })?;
        Some(self.take_at(position))
    }

    fn take_at(&mut self, position: usize) -> SimulatedFault {
        let one = &mut self.active[position];
        let fault = one.injection.fault.clone();
        if let Some(times) = &mut one.injection.times {
            *times = times.saturating_sub(1);
            if *times == 0 {
                self.active.remove(position);
            }
        }
        fault
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn injection(text: &str) -> FaultInjection {
        serde_json::from_str(text).expect("a fault injection")
    }

    fn pick(faults: &mut FaultQueue, account: Option<&str>) -> Option<&'static str> {
        let fault = faults.pick(SimulatedNetwork::NetworkC, Endpoint::Events, account);
        fault.map(|fault| fault.kind())
    }

    #[test]
    fn faults_are_queued_and_used_up() {
        let mut faults = FaultQueue::default();
        for text in [
            r#"{"network":"network_c","fault":{"kind":"hang"},"times":1}"#,
            r#"{"network":"network_c","account":"P","fault":{"kind":"delay","ms":1},"times":1}"#,
            r#"{"network":"network_c","fault":{"kind":"reset_after"}}"#,
        ] {
            faults.add(injection(text)).expect("accepted");
        }
        assert_eq!(pick(&mut faults, Some("P")), Some("hang"));
        assert_eq!(pick(&mut faults, Some("Q")), Some("reset_after"));
        assert_eq!(pick(&mut faults, Some("P")), Some("delay"));
        assert_eq!(pick(&mut faults, Some("P")), Some("reset_after"));
        faults.clear(Some(SimulatedNetwork::NetworkA));
        assert_eq!(pick(&mut faults, None), Some("reset_after"));
        faults.clear(Some(SimulatedNetwork::NetworkC));
        assert_eq!(pick(&mut faults, None), None);
    }

    #[test]
    fn a_reset_before_reading_waits_for_its_turn() {
        let mut faults = FaultQueue::default();
        for text in [
            r#"{"network":"network_c","account":"P","fault":{"kind":"hang"},"times":1}"#,
            r#"{"network":"network_c","fault":{"kind":"reset_before"},"times":1}"#,
        ] {
            faults.add(injection(text)).expect("accepted");
        }
        let mut early = |account| {
            let picked = faults.pick_early(SimulatedNetwork::NetworkC, Endpoint::Events, account);
            matches!(picked, EarlyPick::Taken(SimulatedFault::ResetBefore {}))
        };
        assert!(!early(None), "the account may be P");
        assert!(!early(Some("P")));
        assert!(early(Some("Q")));
        assert!(!early(Some("Q")));
    }

    #[test]
    fn poison_matches_by_id_prefix_or_mark() {
        let poison = |ids: &[&str], prefix: Option<&str>| EventRejectionRule {
            ids: ids.iter().map(|&id| id.to_owned()).collect(),
            prefix: prefix.map(str::to_owned),
            names_index: true,
            is_partial: false,
            by_path: false,
            number: 1,
        };
        assert!(poison(&["x"], None).matches("x", false));
        assert!(!poison(&["x"], None).matches("y", true));
        assert!(poison(&[], Some("bad")).matches("bad1", false));
        assert!(poison(&[], None).matches("y", true));
    }
}
