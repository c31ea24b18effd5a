//! Rules for one exported event, before it is compared with stored data.

use super::ImportedEvent;
use crate::access::Environment;
use crate::event::{EventSource, name};
use crate::ledger::UncountedReason;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};

/// Checks the fields of an exported event against each other.
pub fn check(imported: &ImportedEvent, faults: &mut Faults) {
    let event = &imported.event;
    let mut fault =
        |field: &str, code, message: &str| faults.add(field, Problem::new(code, message));
    if event.id.at() != event.occurred_at {
        let message = "Must contain the event's time, which must equal `timestampMs`.";
        fault("id", FaultCode::InvalidFormat, message);
    }
    if event.is_service_install {
        if event.name != name::INSTALL || event.source != EventSource::Sdk {
            let message = "Only SDK events named `install` are installs.";
            fault("install", FaultCode::NotAllowed, message);
        }
        let required = "Required for an install.";
        if event.device.is_none() {
            fault("deviceId", FaultCode::Required, required);
        }
        if event.platform.is_none() {
            fault("platform", FaultCode::Required, required);
        }
        if event.credit.is_none() {
            fault("attribution", FaultCode::Required, required);
        }
    }
    if event.source == EventSource::Web && event.environment != Environment::Live {
        let message = "Web events are always `live`.";
        fault("environment", FaultCode::NotAllowed, message);
    }
    if event.source != EventSource::Sdk && event.duplicate_of.is_some() {
        let message = "Only SDK events can be duplicates.";
        fault("duplicateOf", FaultCode::NotAllowed, message);
    }
    if let Some(revenue) = &event.revenue {
        let is_duplicate = event.duplicate_of.is_some();
        let says_duplicate = revenue.uncounted == Some(UncountedReason::DuplicateOfVerified);
        if is_duplicate != says_duplicate {
            let message = "Must be `duplicate_of_verified` if and only if `duplicateOf` is set.";
            fault("revenue.reason", FaultCode::NotAllowed, message);
        }
        if revenue.uncounted.is_none() && revenue.usd.is_none() {
            let message = "Required if the revenue counts.";
            fault("revenue.usd", FaultCode::Required, message);
        }
    }
}
