//! Erasing a device. Its rows stay under a pseudonym without personal data.

use crate::person::{find_chains_of_person, remove_shared};
use crate::plan::cancel_all;
use crate::tables::Tables;
use crate::tally::TransactionTally;
use std::collections::BTreeSet;
use tributary_domain::audit::{Action, AuditContext};
use tributary_domain::device::{DeviceKey, DeviceRef, UserKey};
use tributary_domain::erasure::{Erasure, ErasureReach, ErasureRequester, check_erase_proof};
use tributary_domain::forwarding::lifecycle::ERASED;
use tributary_domain::install::DeviceState;
use tributary_domain::personal_data::{EventReferences, clicks_of_device, users_of_device};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::{EventId, OrganizationId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::EraseRequest;
use tributary_store::records::audit_row;

/// Erases a device of one of the organization's apps, and the device's users that no other device
/// is linked to. The app is locked, as in every transaction that settles subscriptions or links
/// devices. A transaction that was waiting for the device's lock no longer finds the device, and
/// creates a new one.
pub async fn erase_device<T: Tables>(
    tables: &T,
    organization: OrganizationId,
    device: DeviceRef<'_>,
    pseudonym: &DeviceKey,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    let by = ErasureRequester::Operator;
    erase_and_audit(tables, organization, (device, by), pseudonym, origin).await
}

async fn erase_and_audit<T: Tables>(
    tables: &T,
    organization: OrganizationId,
    (device, by): (DeviceRef<'_>, ErasureRequester),
    pseudonym: &DeviceKey,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    tables.require_app(organization, device.app).await?;
    erase(tables, (device, by), pseudonym, origin.at).await?;
    let (action, target) = (Action::DeviceErased, pseudonym.as_str());
    let row = audit_row(organization, origin, action, Some(device.app), target, &[]);
    tables.insert_audit(&row).await
}

/// Erases a device at the request of its user, who proves it with a token. The device's users are
/// erased only if their claims are signed. An operator's erasure keeps the proof, so that the user can erase what the app sent afterwards.
pub async fn erase_own_device<T: Tables>(
    tables: &T,
    request: &EraseRequest,
) -> Result<(), T::Failure> {
    let device = DeviceRef {
        app: request.app,
        environment: request.environment,
        key: &request.device,
    };
    let stored = tables.erase_proofs(device, &request.proof).await?;
    check_erase_proof(&stored, &request.proof)?;
    let (pseudonym, origin) = (&request.pseudonym, &request.origin);
    let of = (device, ErasureRequester::DeviceUser);
    erase_and_audit(tables, request.organization, of, pseudonym, origin).await
}

async fn erase<T: Tables>(
    tables: &T,
    (device, by): (DeviceRef<'_>, ErasureRequester),
    pseudonym: &DeviceKey,
    at: Timestamp,
) -> Result<(), T::Failure> {
    let state = tables.lock_device(device, at).await?;
    // Merge the app's increments while the device's events can still be found. A later merge would
    // add the erased device to its cohort again.
    tables.merge_increments(device.app).await?;
    let mut traces = tables.traces_of_device(device).await?;
    if state.is_empty() && traces.is_empty() {
        return Err(Refusal::DeviceNotFound.into());
    }
    let references = EventReferences::of(&traces);
    let reach = reach(tables, (device, by), &state, &references).await?;
    let keeps_billing = reach.keeps_billing;
    let erasure = Erasure::of(device.key.clone(), pseudonym.clone(), &state, reach);
    let scope = (device.app, device.environment);
    let users: Vec<UserKey> = erasure.person.users.iter().cloned().collect();
    traces.extend(tables.traces_of_people(scope, &users).await?);
    let references = EventReferences::of(&traces);
    if keeps_billing {
        tables.rename_billing_events(device, pseudonym).await?;
        erase_subscriptions(tables, device, &erasure, &BTreeSet::new()).await?;
    } else {
        erase_subscriptions(tables, device, &erasure, &references.payments).await?;
    }
    tables.erase_events_of_people(scope, &users).await?;
    tables.erase_events_of_device(device, pseudonym).await?;
    tables.forget_users_elsewhere(device, &users).await?;
    let clicks = clicks_of_device(&state, &references);
    let clicks = tables.lock_clicks(device.app, &clicks).await?;
    let clicks = erasure.erase_clicks(device, clicks);
    tables.write_remaining_clicks(device.app, &clicks).await?;
    tables.forget_identity(device, pseudonym).await?;
    if let (Some(stored), Some(attribution)) = (state.device, state.attribution) {
        let (stored, attribution) = (
            erasure.erase_device(stored),
            erasure.erase_attribution(attribution),
        );
        tables
            .write_remaining_device(device, &stored, &attribution)
            .await?;
    }
    tables.remove_device_token(device).await?;
    tables.move_erase_proof(device, pseudonym).await?;
    let events: Vec<EventId> = traces.iter().map(|trace| trace.event).collect();
    let mut tally = TransactionTally::default();
    cancel_all(tables, device.app, &events, (ERASED, at), &mut tally).await?;
    tally.write(tables).await?;
    tables.rename_cohort_device(device, pseudonym).await
}

/// Decides how far the erasure reaches. Users that another device is linked to are left out.
async fn reach<T: Tables>(
    tables: &T,
    (device, by): (DeviceRef<'_>, ErasureRequester),
    state: &DeviceState,
    references: &EventReferences,
) -> Result<ErasureReach, T::Failure> {
    let linked = tables.linked_people(device).await?;
    let signed = tables.signed_people(device).await?;
    let users = users_of_device(state, linked, references);
    let mut reach = ErasureReach::of(by, users, &signed);
    let scope = (device.app, device.environment);
    let devices = BTreeSet::from([device.key.clone()]);
    remove_shared(tables, scope, &devices, &mut reach.people).await?;
    Ok(reach)
}

/// Erases the subscribers of subscriptions. The subscriptions continue under the device's
/// pseudonym.
async fn erase_subscriptions<T: Tables>(
    tables: &T,
    device: DeviceRef<'_>,
    erasure: &Erasure,
    payments: &BTreeSet<String>,
) -> Result<(), T::Failure> {
    let scope = (device.app, device.environment);
    let chains = find_chains_of_person(tables, scope, &erasure.person, payments).await?;
    for chain in &chains {
        let remaining = erasure.erase_chain(tables.all_notifications(chain).await?);
        tables.insert_keys(chain, &remaining.lookup_keys).await?;
        tables.remove_keys(chain, &remaining.removed_keys).await?;
        tables
            .erase_notifications(chain, &remaining.notifications)
            .await?;
    }
    tables.unlink_device(device).await
}
