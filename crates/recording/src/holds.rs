//! Reviews of held installs.

use crate::configure::recredit;
use crate::plan::read_plan_context;
use crate::tables::Tables;
use crate::tally::TransactionTally;
use std::collections::BTreeSet;
use tributary_domain::access::Environment;
use tributary_domain::attribution::{HoldDecision, HoldFilter, HoldReview, HoldState, InstallHold};
use tributary_domain::audit::{Action, AuditContext, Changes};
use tributary_domain::device::{DeviceKey, DeviceRef};
use tributary_domain::event::Event;
use tributary_domain::forwarding::delivery::delivery_id;
use tributary_domain::forwarding::plan::DeviceFacts;
use tributary_domain::install::{Attribution, DeviceState};
use tributary_domain::integration::Network;
use tributary_domain::ledger::sdk_policy;
use tributary_domain::refusal::Refusal;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::id::{AppId, DeliveryId, OrganizationId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::audit_row;
use tributary_store::{HOLD_REVIEWS_MAX, HeldInstall, HoldReviewCount, StoreError};

/// Number of a device's events whose deliveries are examined per query.
const EXAMINED_AT_ONCE_MAX: usize = 1_000;

/// Releases or rejects an install. Returns the install, and the increments for the roll-ups.
pub async fn review_install<T: Tables>(
    tables: &T,
    organization: OrganizationId,
    device: DeviceRef<'_>,
    decision: HoldDecision,
    origin: &AuditContext,
) -> Result<(HeldInstall, Increments), T::Failure> {
    tables.require_app(organization, device.app).await?;
    let state = tables.lock_device(device, origin.at).await?;
    let before = hold_of(&state)?.clone();
    let mut tally = TransactionTally::default();
    let reviewed = review(tables, device, state, decision, origin, &mut tally).await?;
    let after = reviewed.attribution.hold_state().unwrap_or(before.state);
    if after != before.state {
        // The audit log outlives an erased device, so it names the attribution.
        let target = reviewed.attribution.id;
        let mut changes = Changes::new();
        changes.compare_values("hold", before.state.as_str(), after.as_str());
        let changes = changes.into_vec();
        let (action, app) = (action(decision), Some(device.app));
        let row = audit_row(organization, origin, action, app, target, &changes);
        tables.insert_audit(&row).await?;
    }
    Ok((reviewed, tally.write(tables).await?))
}

/// Releases or rejects the held installs that match a filter, newest first. Returns their number,
/// and the increments for the roll-ups.
pub async fn review_installs<T: Tables>(
    tables: &T,
    organization: OrganizationId,
    (app, environment): (AppId, Environment),
    filter: &HoldFilter,
    decision: HoldDecision,
    origin: &AuditContext,
) -> Result<(HoldReviewCount, Increments), T::Failure> {
    tables.require_app(organization, app).await?;
    let filter = HoldFilter {
        state: HoldState::Held,
        ..*filter
    };
    let limit = i64::from(HOLD_REVIEWS_MAX);
    let scope = (app, environment);
    let found = tables
        .held_installs(scope, &filter, None, limit + 1)
        .await?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = found.len() > limit;
    let keys = found.into_iter().take(limit).map(|held| held.device.key);
    // Sorted, because all transactions lock devices in key order.
    let keys: BTreeSet<DeviceKey> = keys.collect();
    let of_app = |key| DeviceRef {
        app,
        environment,
        key,
    };
    let devices = keys.iter().map(of_app).collect();
    tables.lock_devices(&devices, origin.at).await?;
    let mut tally = TransactionTally::default();
    let mut decided = 0;
    for device in devices {
        let state = tables.lock_device(device, origin.at).await?;
        // Another request may have decided before the device was locked.
        if hold_of(&state).is_ok_and(|hold| hold.state == HoldState::Held) {
            review(tables, device, state, decision, origin, &mut tally).await?;
            decided += 1;
        }
    }
    let target = format!("{decided} installs");
    let row = audit_row(
        organization,
        origin,
        action(decision),
        Some(app),
        target,
        &[],
    );
    tables.insert_audit(&row).await?;
    let count = HoldReviewCount { decided, has_more };
    Ok((count, tally.write(tables).await?))
}

const fn action(decision: HoldDecision) -> Action {
    match decision {
        HoldDecision::Release => Action::HeldReleased,
        HoldDecision::Reject => Action::HeldRejected,
    }
}

fn hold_of(state: &DeviceState) -> Result<&InstallHold, Refusal> {
    let attribution = state.attribution.as_ref();
    let attribution = attribution.ok_or(Refusal::DeviceNotFound)?;
    attribution.hold.as_ref().ok_or(Refusal::InstallNotHeld)
}

/// Writes the decision about a locked device, moves the figures of its events, and plans or cancels
/// their deliveries.
async fn review<T: Tables>(
    tables: &T,
    device: DeviceRef<'_>,
    state: DeviceState,
    decision: HoldDecision,
    origin: &AuditContext,
    tally: &mut TransactionTally,
) -> Result<HeldInstall, T::Failure> {
    let hold = hold_of(&state)?.clone();
    let was_sent = hold.state == HoldState::Released && was_sent(tables, device, origin.at).await?;
    let review = HoldReview {
        decided_by: origin.actor.clone(),
        decided_at: origin.at,
    };
    let reviewed = hold.reviewed(decision, was_sent, review)?;
    let DeviceState {
        device: Some(stored),
        attribution: Some(attribution),
        ..
    } = &state
    else {
        return Err(Refusal::DeviceNotFound.into());
    };
    let stored = stored.clone();
    let Some(hold) = reviewed else {
        return Ok(HeldInstall {
            device: stored,
            attribution: attribution.clone(),
        });
    };
    let attribution = Attribution {
        hold: Some(hold),
        ..attribution.clone()
    };
    tables.update_device(device, &stored, &attribution).await?;
    let state = DeviceState {
        attribution: Some(attribution.clone()),
        ..state
    };
    recount(tables, device, &state, origin.at, tally).await?;
    Ok(HeldInstall {
        device: stored,
        attribution,
    })
}

/// Credits the device's events again, which copies the state of the hold to them.
async fn recount<T: Tables>(
    tables: &T,
    device: DeviceRef<'_>,
    state: &DeviceState,
    now: Timestamp,
    tally: &mut TransactionTally,
) -> Result<(), T::Failure> {
    let missing = || StoreError::corrupt("devices", "app_id", device.app);
    let app = tables.app(device.app).await?.ok_or_else(missing)?;
    let Some(credit) = state.attribution.as_ref().map(Attribution::credit) else {
        return Ok(());
    };
    let plan_context = read_plan_context(tables, device.app, Some(&credit)).await?;
    let facts = DeviceFacts {
        state,
        click: plan_context.click.as_ref(),
        policy: sdk_policy(&app),
        now,
        requires_attestation: app.requires_attestation(),
    };
    recredit(
        tables,
        device,
        &credit,
        &facts,
        &plan_context.integrations,
        tally,
    )
    .await
}

/// Returns whether an event of a device was sent to a network, or is being sent. Locks the pending
/// deliveries, so that none of them is sent until the transaction ends.
async fn was_sent<T: Tables>(
    tables: &T,
    device: DeviceRef<'_>,
    now: Timestamp,
) -> Result<bool, T::Failure> {
    let deliveries = |event: &Event| Network::ALL.map(|network| delivery_id(event.id, network));
    let mut last = None;
    loop {
        let limit = EXAMINED_AT_ONCE_MAX;
        let events = tables.events_to_credit(device, last, limit).await?;
        let Some(latest) = events.last() else {
            return Ok(false);
        };
        last = Some(latest.id);
        let ids: BTreeSet<DeliveryId> = events.iter().flat_map(deliveries).collect();
        tables.lock_pending(device.app, &ids, now).await?;
        if tables.was_sent(device.app, &ids).await? {
            return Ok(true);
        }
    }
}
