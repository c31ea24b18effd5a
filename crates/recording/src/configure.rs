//! Registers devices and identifies their users.

use crate::device_links::{lock_app, read_claim_facts, record_claim, settle_linked};
use crate::plan::{self, ReplanContext, read_plan_context};
use crate::tables::Tables;
use crate::tally::TransactionTally;
use tributary_domain::billing::DeviceUpdate;
use tributary_domain::device::{DeviceRef, IdentityClaim, claim};
use tributary_domain::event::Credit;
use tributary_domain::forwarding::lifecycle::ATTRIBUTION_CHANGED;
use tributary_domain::forwarding::plan::DeviceFacts;
use tributary_domain::install::{
    ConfigureCommand, ConfigureDecision, DeviceState, candidate_query, configure as decide,
};
use tributary_domain::integration::Integration;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::ConfigureOutcome;

/// Number of a device's events that are recredited per query.
const RECREDITED_AT_ONCE_MAX: usize = 1_000;

/// Records a `configure` call: the device, the decision about its install, and the events and
/// deliveries that follow. Returns the outcome, and the increments for the roll-ups.
pub async fn configure<T: Tables>(
    tables: &T,
    command: &ConfigureCommand,
) -> Result<(ConfigureOutcome, Increments), T::Failure> {
    let device = DeviceRef {
        app: command.app,
        environment: command.environment,
        key: &command.device,
    };
    let mut tally = TransactionTally::default();
    let lock = lock_app(tables, device, &command.possible_identifiers()).await?;
    let state = tables.lock_device(device, command.at).await?;
    if let Some(click) = &command.app_link_click
        && tables.insert_click(click).await?
    {
        tally.increments.add_click(click);
    }
    let candidates = tables
        .candidates(command, &candidate_query(command, &state))
        .await?;
    let now = (device, command.at);
    let claims = read_claim_facts(tables, now, &state.identity, &command.identity).await?;
    let decision = decide(command, &state, candidates, &claims);
    write(tables, command, device, &state, &decision).await?;
    credit_and_plan(tables, command, &state, &decision, &mut tally).await?;
    let update = decision.changed_identifiers(&state);
    settle_linked(tables, lock, now, &update, &mut tally).await?;
    let outcome = ConfigureOutcome {
        is_first_open: decision.is_first_open,
        attribution: decision.attribution,
    };
    Ok((outcome, tally.write(tables).await?))
}

/// Writes the device, its identity, its click and its token.
async fn write<T: Tables>(
    tables: &T,
    command: &ConfigureCommand,
    device: DeviceRef<'_>,
    state: &DeviceState,
    decision: &ConfigureDecision,
) -> Result<(), T::Failure> {
    if decision.is_first_open {
        tables.insert_device(command, decision).await?;
    } else {
        let now = &decision.device;
        tables
            .update_device(device, now, &decision.attribution)
            .await?;
    }
    if decision.identity != state.identity {
        let identity = &decision.identity;
        tables.write_identity(device, identity, command.at).await?;
    }
    let user_claim = decision.user_claim.as_ref();
    record_claim(tables, (device, command.at), user_claim).await?;
    if let Some(click) = decision.released_click {
        tables.release_click(device, click).await?;
    }
    if let Some(click) = decision.taken_click {
        tables.take_click(device, click).await?;
    }
    if let Some(click) = decision.referenced_click {
        tables.keep_click(device.app, click).await?;
    }
    if decision.redeems_token {
        tables.enqueue_token(command).await?;
    }
    Ok(())
}

/// Recredits the device's earlier events, records the install, and plans the deliveries of all of
/// them.
async fn credit_and_plan<T: Tables>(
    tables: &T,
    command: &ConfigureCommand,
    state: &DeviceState,
    decision: &ConfigureDecision,
    tally: &mut TransactionTally,
) -> Result<(), T::Failure> {
    if !decision.is_new_decision && decision.install.is_none() {
        return Ok(());
    }
    let state = decision.device_state(state);
    let credit = decision.attribution.credit();
    let plan_context = read_plan_context(tables, command.app, Some(&credit)).await?;
    let facts = DeviceFacts {
        state: &state,
        click: plan_context.click.as_ref(),
        policy: command.policy,
        now: command.at,
        requires_attestation: command.requires_attestation(),
    };
    if decision.is_new_decision {
        let device = DeviceRef {
            app: command.app,
            environment: command.environment,
            key: &command.device,
        };
        recredit(
            tables,
            device,
            &credit,
            &facts,
            &plan_context.integrations,
            tally,
        )
        .await?;
    }
    if let Some(install) = decision.install.clone() {
        plan::record_event(tables, install, &facts, &plan_context.integrations, tally).await?;
    }
    Ok(())
}

/// Recredits a device's events to its current attribution, moves their figures, and plans their
/// deliveries again. The caller holds the lock on the device, so no event is added meanwhile.
pub(crate) async fn recredit<T: Tables>(
    tables: &T,
    device: DeviceRef<'_>,
    credit: &Credit,
    facts: &DeviceFacts<'_>,
    integrations: &[Integration],
    tally: &mut TransactionTally,
) -> Result<(), T::Failure> {
    let replan = ReplanContext {
        facts,
        integrations,
        cancel_reason: ATTRIBUTION_CHANGED,
    };
    let mut last = None;
    loop {
        let limit = RECREDITED_AT_ONCE_MAX;
        let mut events = tables.events_to_credit(device, last, limit).await?;
        let Some(latest) = events.last() else { break };
        last = Some(latest.id);
        for event in &mut events {
            tally.increments.move_event(event, credit);
        }
        plan::replan(tables, device.app, &mut events, &replan, tally).await?;
    }
    if last.is_none() {
        return Ok(());
    }
    tables.write_credit(device, credit).await
}

/// Stores the identity of a device's user. Returns the increments for the roll-ups.
pub async fn identify<T: Tables>(
    tables: &T,
    device: DeviceRef<'_>,
    identity: &IdentityClaim,
    at: Timestamp,
) -> Result<Increments, T::Failure> {
    let possible_update = DeviceUpdate {
        user: identity.user.clone(),
        ..DeviceUpdate::default()
    };
    let lock = lock_app(tables, device, &possible_update).await?;
    let before = tables.lock_device(device, at).await?.identity;
    let facts = read_claim_facts(tables, (device, at), &before, identity).await?;
    let decision = claim(&before, identity, &facts);
    if decision.identity == before && decision.user_claim.is_none() {
        return Ok(Increments::default());
    }
    if decision.identity != before {
        let identity = &decision.identity;
        tables.write_identity(device, identity, at).await?;
    }
    let user_claim = decision.user_claim.as_ref();
    record_claim(tables, (device, at), user_claim).await?;
    let update = DeviceUpdate {
        user: user_claim.map(|claim| claim.user.clone()),
        ..DeviceUpdate::default()
    };
    let mut tally = TransactionTally::default();
    settle_linked(tables, lock, (device, at), &update, &mut tally).await?;
    tally.write(tables).await
}
