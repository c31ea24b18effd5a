//! Registers devices and identifies their users.

use crate::device_links::{lock_app, read_claim_facts, settle_linked};
use crate::plan::{self, ReplanContext, read_plan_context};
use crate::tables::{ConfigureWrites, Tables};
use crate::tally::TransactionTally;
use tributary_domain::billing::DeviceUpdate;
use tributary_domain::click::Click;
use tributary_domain::device::{DeviceRef, IdentityClaim, claim};
use tributary_domain::event::Credit;
use tributary_domain::forwarding::lifecycle::{ATTRIBUTION_CHANGED, CONSENT_WITHDRAWN};
use tributary_domain::forwarding::plan::DeviceFacts;
use tributary_domain::install::{
    ConfigureCommand, ConfigureDecision, DeviceState, candidate_query, configure as decide,
};
use tributary_domain::integration::Integration;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::id::EventId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::ConfigureOutcome;

/// Number of a device's events that are recredited, or whose deliveries are cancelled, per query.
const RECREDITED_AT_ONCE_MAX: usize = 1_000;

/// Records a `configure` call: the device, the decision about its install, and the events and
/// deliveries that follow. Returns the outcome, and the increments for the roll-ups.
pub async fn configure<T: Tables>(
    tables: &T,
    command: &ConfigureCommand,
) -> Result<(ConfigureOutcome, Increments), T::Failure> {
    let device = command.device_ref();
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
    let call = DecidedCall {
        command,
        state,
        decision,
    };
    let mut writes = ConfigureWrites::default();
    call.add_to(&mut writes);
    write(tables, &writes).await?;
    if call.withdraws_consent() {
        cancel_deliveries(tables, now, &mut tally).await?;
    }
    credit_and_plan(tables, &call, &mut tally).await?;
    let update = call.update();
    settle_linked(tables, lock, now, &update, &mut tally).await?;
    Ok((call.outcome(), tally.write(tables).await?))
}

/// A call with the decision about it.
pub(crate) struct DecidedCall<'a> {
    pub(crate) command: &'a ConfigureCommand,
    /// State of the device before the call.
    pub(crate) state: DeviceState,
    pub(crate) decision: ConfigureDecision,
}

impl DecidedCall<'_> {
    /// Adds the rows that the call writes.
    pub(crate) fn add_to<'a>(&'a self, writes: &mut ConfigureWrites<'a>) {
        let (command, decision) = (self.command, &self.decision);
        let (device, at) = (command.device_ref(), command.at);
        if decision.is_first_open {
            writes.new_devices.push((command, decision));
        } else {
            let now = (device, &decision.device, &decision.attribution);
            writes.devices.push(now);
        }
        if decision.identity != self.state.identity {
            writes.identities.push((device, &decision.identity, at));
        }
        writes.add_claim((device, at), decision.user_claim.as_ref());
        let of_device = |click| (device, click);
        let released = decision.released_click.map(of_device);
        writes.released_clicks.extend(released);
        let taken = decision.taken_click.map(of_device);
        writes.taken_clicks.extend(taken);
        let kept = decision.referenced_click.map(|click| (device.app, click));
        writes.kept_clicks.extend(kept);
        let erasable = command.erase_proof.is_some();
        writes.erase_proofs.extend(erasable.then_some(command));
        writes
            .tokens
            .extend(decision.redeems_token.then_some(command));
    }

    /// Returns the changes that matter for billing.
    pub(crate) fn update(&self) -> DeviceUpdate {
        self.decision.changed_identifiers(&self.state)
    }

    /// Returns whether the call withdraws the user's consent.
    pub(crate) fn withdraws_consent(&self) -> bool {
        self.decision.withdraws_consent(&self.state)
    }

    /// Returns the facts for planning the device's events.
    pub(crate) fn planning_facts<'a>(
        &self,
        state: &'a DeviceState,
        click: Option<&'a Click>,
    ) -> DeviceFacts<'a> {
        DeviceFacts {
            state,
            click,
            policy: self.command.policy,
            now: self.command.at,
            requires_attestation: self.command.requires_attestation(),
        }
    }

    /// Returns the response to the call.
    pub(crate) fn outcome(self) -> ConfigureOutcome {
        ConfigureOutcome {
            is_first_open: self.decision.is_first_open,
            attribution: self.decision.attribution,
        }
    }
}

/// Writes the rows one by one.
async fn write<T: Tables>(tables: &T, writes: &ConfigureWrites<'_>) -> Result<(), T::Failure> {
    for (command, decision) in &writes.new_devices {
        tables.insert_device(command, decision).await?;
    }
    for (device, now, attribution) in &writes.devices {
        tables.update_device(*device, now, attribution).await?;
    }
    for (device, identity, at) in &writes.identities {
        tables.write_identity(*device, identity, *at).await?;
    }
    for device in &writes.revoked {
        tables.revoke_unsigned(*device).await?;
    }
    for (device, claim, at) in &writes.claims {
        tables.link_user(*device, claim, *at).await?;
    }
    for (device, click) in &writes.released_clicks {
        tables.release_click(*device, *click).await?;
    }
    for (device, click) in &writes.taken_clicks {
        tables.take_click(*device, *click).await?;
    }
    for (app, click) in &writes.kept_clicks {
        tables.keep_click(*app, *click).await?;
    }
    for command in &writes.erase_proofs {
        tables.insert_erase_proof(command).await?;
    }
    for command in &writes.tokens {
        tables.enqueue_token(command).await?;
    }
    Ok(())
}

/// Cancels the pending deliveries of a device's events, because consent was withdrawn. The sender of
/// a web event is responsible for its consent, so such events are not affected.
async fn cancel_deliveries<T: Tables>(
    tables: &T,
    (device, at): (DeviceRef<'_>, Timestamp),
    tally: &mut TransactionTally,
) -> Result<(), T::Failure> {
    let mut last = None;
    loop {
        let events = tables
            .events_to_credit(device, last, RECREDITED_AT_ONCE_MAX)
            .await?;
        let Some(latest) = events.last() else {
            return Ok(());
        };
        last = Some(latest.id);
        let events: Vec<EventId> = events.iter().map(|event| event.id).collect();
        let reason = (CONSENT_WITHDRAWN, at);
        plan::cancel_all(tables, device.app, &events, reason, tally).await?;
    }
}

/// Recredits the device's earlier events, records the install, and plans the deliveries of all of
/// them.
async fn credit_and_plan<T: Tables>(
    tables: &T,
    call: &DecidedCall<'_>,
    tally: &mut TransactionTally,
) -> Result<(), T::Failure> {
    let (command, decision) = (call.command, &call.decision);
    if !decision.is_new_decision && decision.install.is_none() {
        return Ok(());
    }
    let state = decision.device_state(&call.state);
    let credit = decision.attribution.credit();
    let plan_context = read_plan_context(tables, command.app, Some(&credit)).await?;
    let facts = call.planning_facts(&state, plan_context.click.as_ref());
    if decision.is_new_decision {
        recredit(
            tables,
            command.device_ref(),
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
    let mut writes = ConfigureWrites::default();
    if decision.identity != before {
        writes.identities.push((device, &decision.identity, at));
    }
    let user_claim = decision.user_claim.as_ref();
    writes.add_claim((device, at), user_claim);
    write(tables, &writes).await?;
    let update = DeviceUpdate {
        user: user_claim.map(|claim| claim.user.clone()),
        ..DeviceUpdate::default()
    };
    let mut tally = TransactionTally::default();
    settle_linked(tables, lock, (device, at), &update, &mut tally).await?;
    tally.write(tables).await
}
