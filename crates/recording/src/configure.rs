//! A device says what it is, and who is behind it.

use crate::device_links::{link_and_settle, lock_app};
use crate::plan::{self, ReplanContext, read_plan_context};
use crate::settle::SettleContext;
use crate::tables::Tables;
use crate::tally::TransactionTally;
use tributary_domain::app::FraudPolicy;
use tributary_domain::billing::DeviceUpdate;
use tributary_domain::device::{DeviceRef, Identity};
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

/// Events of a device that are credited again at once.
const RECREDITED_AT_ONCE_MAX: usize = 1_000;

/// Records a call of `configure`: the device, the decision about its install, and everything that follows from both.
/// Returns the answer, and what is to be added to the reports.
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
    let known = tables.lock_device(device, command.at).await?;
    if let Some(click) = &command.app_link_click
        && tables.insert_click(click).await?
    {
        tally.increments.add_click(click);
    }
    let found = tables
        .candidates(command, &candidate_query(command, &known))
        .await?;
    let opening = decide(command, &known, found);
    write(tables, command, device, &known, &opening).await?;
    credit_and_plan(tables, command, &known, &opening, &mut tally).await?;
    let moment = SettleContext {
        now: command.at,
        holds_suspicious: command.rules.fraud == FraudPolicy::Hold,
    };
    let shown = opening.changed_identifiers(&known);
    let now = (device, command.at);
    link_and_settle(tables, lock, now, &shown, Some(moment), &mut tally).await?;
    let configured = ConfigureOutcome {
        is_first_open: opening.is_first_open,
        attribution: opening.attribution,
    };
    Ok((configured, tally.write(tables).await?))
}

/// Writes the device, its person, its click and its token.
async fn write<T: Tables>(
    tables: &T,
    command: &ConfigureCommand,
    device: DeviceRef<'_>,
    known: &DeviceState,
    opening: &ConfigureDecision,
) -> Result<(), T::Failure> {
    if opening.is_first_open {
        tables.insert_device(command, opening).await?;
    } else {
        let now = &opening.device;
        tables
            .update_device(device, now, &opening.attribution)
            .await?;
    }
    if opening.identity != known.identity {
        let identity = &opening.identity;
        tables.write_identity(device, identity, command.at).await?;
    }
    if let Some(click) = opening.released_click {
        tables.release_click(device, click).await?;
    }
    if let Some(click) = opening.taken_click {
        tables.take_click(device, click).await?;
    }
    if let Some(click) = opening.referenced_click {
        tables.keep_click(device.app, click).await?;
    }
    if opening.redeems_token {
        tables.enqueue_token(command).await?;
    }
    Ok(())
}

/// Credits the events so far, records the install, and plans which networks hear of them.
async fn credit_and_plan<T: Tables>(
    tables: &T,
    command: &ConfigureCommand,
    known: &DeviceState,
    opening: &ConfigureDecision,
    tally: &mut TransactionTally,
) -> Result<(), T::Failure> {
    if !opening.is_new_decision && opening.install.is_none() {
        return Ok(());
    }
    let known = opening.device_state(known);
    let credit = opening.attribution.credit();
    let around = read_plan_context(tables, command.app, Some(&credit)).await?;
    let facts = DeviceFacts {
        state: &known,
        click: around.click.as_ref(),
        holds_suspicious: command.rules.fraud == FraudPolicy::Hold,
        policy: command.policy,
        now: command.at,
    };
    if opening.is_new_decision {
        let device = DeviceRef {
            app: command.app,
            environment: command.environment,
            key: &command.device,
        };
        recredit(tables, device, &credit, &facts, &around.integrations, tally).await?;
    }
    if let Some(install) = opening.install.clone() {
        plan::record_event(tables, install, &facts, &around.integrations, tally).await?;
    }
    Ok(())
}

/// Credits a device's events so far to where its install belongs now, moves their figures along, and plans again which
/// networks hear of them. The device is locked, so that no event is added meanwhile.
pub(crate) async fn recredit<T: Tables>(
    tables: &T,
    device: DeviceRef<'_>,
    credit: &Credit,
    facts: &DeviceFacts<'_>,
    integrations: &[Integration],
    tally: &mut TransactionTally,
) -> Result<(), T::Failure> {
    let again = ReplanContext {
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
        plan::replan(tables, device.app, &mut events, &again, tally).await?;
    }
    if last.is_none() {
        return Ok(());
    }
    tables.write_credit(device, credit).await
}

/// Records who is behind a device. Returns what is to be added to the reports.
pub async fn identify<T: Tables>(
    tables: &T,
    device: DeviceRef<'_>,
    identity: Identity,
    at: Timestamp,
) -> Result<Increments, T::Failure> {
    let may_show = DeviceUpdate {
        user: identity.user.clone(),
        ..DeviceUpdate::default()
    };
    let lock = lock_app(tables, device, &may_show).await?;
    let before = tables.lock_device(device, at).await?.identity;
    let now = before.clone().updated(identity);
    if now == before {
        return Ok(Increments::default());
    }
    tables.write_identity(device, &now, at).await?;
    let shown = DeviceUpdate {
        user: now.new_user(&before),
        ..DeviceUpdate::default()
    };
    let mut tally = TransactionTally::default();
    link_and_settle(tables, lock, (device, at), &shown, None, &mut tally).await?;
    tally.write(tables).await
}
