//! Records `configure` calls in batches.
//!
//! The facts for all calls are read at once, the calls are decided in order, and their rows are
//! written together. Most calls are first opens, or later calls that change little. The other calls
//! are left to [`configure`](fn@crate::configure):
//!
//! - those that settle a subscription, for which the app must be locked before the device,
//! - those that credit the device's earlier events again, or cancel their deliveries,
//! - those whose device another transaction has locked. That transaction may take seconds, and the
//!   other calls must not wait for it.

use crate::configure::DecidedCall;
use crate::plan::{PlannedEvent, plan_event};
use crate::tables::{
    ClaimQuery, ConfigureBatchTable, ConfigureQuery, ConfigureWrites, RelatedQuery,
};
use crate::tally::TransactionTally;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tributary_domain::device::DeviceRef;
use tributary_domain::event::Event;
use tributary_domain::forwarding::plan::credited_planning_click;
use tributary_domain::install::{
    BatchChanges, ConfigureCommand, DeviceState, candidate_query, configure as decide,
    independent_calls,
};
use tributary_domain::integration::Integration;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::id::{AppId, ClickId};
use tributary_store::ConfigureOutcome;

type IntegrationsByApp = BTreeMap<AppId, Arc<[Integration]>>;

/// Result of a call in a batch.
#[derive(Debug)]
pub enum BatchedCall {
    /// The call was recorded.
    Recorded(Box<ConfigureOutcome>),
    /// [`configure`](fn@crate::configure) must record the call.
    Alone,
}

/// Records those calls that can be decided together, with the same result as one by one. Returns
/// the result of each call, and the increments for the roll-ups. A call without a result must be
/// passed again, in a later transaction. The first call always has a result.
pub async fn configure_batch<T: ConfigureBatchTable>(
    tables: &T,
    commands: &[ConfigureCommand],
) -> Result<(Vec<Option<BatchedCall>>, Increments), T::Failure> {
    let together = independent_calls(commands);
    let apps = together.iter().map(|command| command.app).collect();
    let integrations = tables.integrations_of(&apps).await?;
    let mut states = lock(tables, &together).await?;
    // At most one call per device, namely its first one.
    let mut results = BTreeMap::new();
    let mut locked = Vec::with_capacity(together.len());
    for command in together {
        let device = command.device_ref();
        match states.remove(&device) {
            Some(state) => locked.push((command, state)),
            None => {
                results.insert(device, BatchedCall::Alone);
            }
        }
    }
    let clicks = locked
        .iter()
        .filter_map(|(command, _)| command.app_link_click.as_ref());
    let mut new_clicks = tables.insert_clicks(&clicks.collect::<Vec<_>>()).await?;
    let calls = decide_in_order(tables, locked).await?;
    let (calls, alone) = without_alone(tables, calls).await?;
    results.extend(alone.into_iter().map(|device| (device, BatchedCall::Alone)));
    let mut tally = TransactionTally::default();
    for call in &calls {
        if let Some(click) = &call.command.app_link_click
            && new_clicks.remove(&(click.app, click.id))
        {
            tally.increments.add_click(click);
        }
    }
    // The clicks of the other calls are stored together with those calls.
    tables.delete_clicks(&new_clicks).await?;
    write(tables, &calls, &integrations, &mut tally).await?;
    for call in calls {
        let device = call.command.device_ref();
        let recorded = BatchedCall::Recorded(Box::new(call.outcome()));
        results.insert(device, recorded);
    }
    let results = commands
        .iter()
        .map(|command| results.remove(&command.device_ref()));
    Ok((results.collect(), tally.write(tables).await?))
}

/// Locks the apps of calls that may link a device, then the devices, except those that other
/// transactions have locked. Returns the states of the locked devices.
async fn lock<'a, T: ConfigureBatchTable>(
    tables: &T,
    commands: &[&'a ConfigureCommand],
) -> Result<BTreeMap<DeviceRef<'a>, DeviceState>, T::Failure> {
    let linking = commands
        .iter()
        .filter(|command| command.possible_identifiers().has_new_id());
    let apps: BTreeSet<AppId> = linking.map(|command| command.app).collect();
    tables.lock_apps_shared(&apps).await?;
    let devices = commands.iter().map(|one| (one.device_ref(), one.at));
    tables.try_lock_devices(&devices.collect::<Vec<_>>()).await
}

/// Decides the calls whose facts are not outdated by the decisions about the earlier ones. The
/// devices are locked, and come with their states.
async fn decide_in_order<'a, T: ConfigureBatchTable>(
    tables: &T,
    locked: Vec<(&'a ConfigureCommand, DeviceState)>,
) -> Result<Vec<DecidedCall<'a>>, T::Failure> {
    let query = |(command, state): &(&'a ConfigureCommand, DeviceState)| {
        let (now, claim) = ((command.device_ref(), command.at), &command.identity);
        ConfigureQuery {
            command,
            clicks: candidate_query(command, state),
            claim: ClaimQuery::of(now, &state.identity, claim),
        }
    };
    let queries: Vec<_> = locked.iter().map(query).collect();
    let facts = tables.configure_facts(&queries).await?;
    let mut changes = BatchChanges::default();
    let mut calls = Vec::with_capacity(locked.len());
    for ((command, state), facts) in locked.into_iter().zip(facts) {
        if changes.postpone(command, &state, &facts.candidates) {
            continue;
        }
        let decision = decide(command, &state, facts.candidates, &facts.claims);
        changes.add(command, &decision);
        calls.push(DecidedCall {
            command,
            state,
            decision,
        });
    }
    Ok(calls)
}

/// Removes each app's first call that settles a subscription or changes earlier events, and the app's
/// later calls, which may depend on it. Returns the remaining calls, and the devices of the calls
/// to record alone.
async fn without_alone<'a, T: ConfigureBatchTable>(
    tables: &T,
    calls: Vec<DecidedCall<'a>>,
) -> Result<(Vec<DecidedCall<'a>>, Vec<DeviceRef<'a>>), T::Failure> {
    let query = |call| {
        let call: &DecidedCall<'_> = call;
        let device = call.command.device_ref();
        RelatedQuery {
            device,
            keys: call.update().keys(device.key),
            changes_events: call.decision.is_new_decision || call.withdraws_consent(),
        }
    };
    let queries: Vec<_> = calls.iter().map(query).collect();
    let related = tables.find_related(&queries).await?;
    let mut alone = BTreeMap::new();
    let mut remaining = Vec::with_capacity(calls.len());
    for (position, call) in calls.into_iter().enumerate() {
        let device = call.command.device_ref();
        if alone.contains_key(&device.app) {
            continue;
        }
        if related.contains(&position) {
            alone.insert(device.app, device);
        } else {
            remaining.push(call);
        }
    }
    Ok((remaining, alone.into_values().collect()))
}

/// Writes the rows, the installs and their deliveries.
async fn write<T: ConfigureBatchTable>(
    tables: &T,
    calls: &[DecidedCall<'_>],
    integrations: &IntegrationsByApp,
    tally: &mut TransactionTally,
) -> Result<(), T::Failure> {
    if calls.is_empty() {
        return Ok(());
    }
    let installs = plan_installs(tables, calls, integrations).await?;
    let mut writes = ConfigureWrites::default();
    for call in calls {
        call.add_to(&mut writes);
    }
    let events: Vec<&Event> = installs.iter().map(|install| &install.event).collect();
    let is_new = tables.write_configured(&writes, &events).await?;
    let mut deliveries = Vec::new();
    for (install, is_new) in installs.into_iter().zip(is_new) {
        if is_new {
            tally.increments.add_event(&install.event);
            deliveries.extend(install.deliveries);
        }
    }
    // The installs are new, so none of their deliveries was planned before.
    tables.insert_planned(&deliveries).await
}

/// Plans the deliveries of the installs.
async fn plan_installs<T: ConfigureBatchTable>(
    tables: &T,
    calls: &[DecidedCall<'_>],
    integrations: &IntegrationsByApp,
) -> Result<Vec<PlannedEvent>, T::Failure> {
    let of_app = |app: &AppId| integrations.get(app).map(Arc::as_ref).unwrap_or_default();
    let planning_click = |event: &Event| -> Option<(AppId, ClickId)> {
        let click = credited_planning_click(of_app(&event.app), event.credit.as_ref())?;
        Some((event.app, click))
    };
    let installs = calls
        .iter()
        .filter_map(|call| Some((call, call.decision.install.as_ref()?)));
    let wanted = installs
        .clone()
        .filter_map(|(_, event)| planning_click(event));
    let clicks = tables.clicks(wanted.collect()).await?;
    let planned = |(call, event): (&DecidedCall<'_>, &Event)| {
        let state = call.decision.device_state(&call.state);
        let click = planning_click(event).and_then(|key| clicks.get(&key));
        let facts = call.planning_facts(&state, click);
        plan_event(event.clone(), &facts, of_app(&event.app))
    };
    Ok(installs.map(planned).collect())
}
