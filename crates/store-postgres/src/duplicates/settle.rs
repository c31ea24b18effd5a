//! Deciding again about SDK events when the verified events of their ids change.

use super::{SharedId, demote, lock_reported, reported, verified};
use crate::devices::{DeviceRef, lock_known};
use crate::outbox::ends::Ends;
use crate::params::column;
use crate::planned::{Replanning, Surroundings};
use crate::rows::{app_by_id, uuid};
use crate::tx::Tx;
use crate::{Failure, event_rows, planned};
use std::collections::BTreeMap;
use tributary_domain::access::Environment;
use tributary_domain::app::FraudPolicy;
use tributary_domain::billing::transaction_key;
use tributary_domain::device::DeviceKey;
use tributary_domain::event::duplicate::{
    Replacement, SdkTerms, VERIFIABLE_NAMES, is_verifiable, settle,
};
use tributary_domain::event::{Event, EventSource};
use tributary_domain::forwarding::course::DUPLICATE_OF_VERIFIED;
use tributary_domain::forwarding::plan::DeviceFacts;
use tributary_domain::ledger::{MoneyPolicy, sdk_policy};
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_domain::vocabulary::time::Timestamp;

/// Decides about the SDK event of an id after the verified events of the id changed. Returns its device if that changed
/// it: the device's first payment has to be settled.
pub(crate) async fn settle_reported(
    tx: &Tx,
    id: SharedId<'_>,
    now: Timestamp,
    increments: &mut Increments,
) -> Result<Option<DeviceKey>, Failure> {
    let event = reported(tx, id).await?;
    let Some(event) = event.filter(|event| is_verifiable(&event.name)) else {
        return Ok(None);
    };
    let mut locked = lock_reported(tx, &[&event], now).await?;
    let event = locked.remove(&event.id).ok_or(Failure::Overtaken)?;
    let Some(app) = app_by_id(tx, uuid(event.app.as_bytes())).await? else {
        return Ok(None);
    };
    let around = planned::surroundings_of(tx, &event).await?;
    let terms = SdkTerms {
        policy: sdk_policy(&app),
        revenue_events: &app.revenue_events,
        integrations: &around.integrations,
    };
    // Read after the lock was taken: what changes verified events decides about this event under the same lock.
    let verified = verified(tx, &[id]).await?.remove(&id).unwrap_or_default();
    let Some(mut settled) = settle(event, &verified, terms) else {
        return Ok(None);
    };
    increments.replace_event(&settled.before, &settled.after);
    let device = settled.after.device.clone();
    let mut ends = Ends::default();
    if settled.is_demotion() {
        demote(tx, &[(settled, now)], &mut ends).await?;
    } else {
        let circumstances = Circumstances {
            around: &around,
            policy: terms.policy,
            holds_suspicious: app.attribution.fraud == FraudPolicy::Hold,
            now,
        };
        restore(tx, &mut settled.after, &circumstances, &mut ends).await?;
    }
    ends.count(tx, now).await?;
    Ok(device)
}

/// What planning an event again depends on.
struct Circumstances<'a> {
    around: &'a Surroundings,
    policy: MoneyPolicy,
    holds_suspicious: bool,
    now: Timestamp,
}

/// Stores an SDK event that is no longer a duplicate, and plans its deliveries.
async fn restore(
    tx: &Tx,
    event: &mut Event,
    circumstances: &Circumstances<'_>,
    ends: &mut Ends,
) -> Result<(), Failure> {
    event_rows::replace(tx, event).await?;
    let Some(key) = event.device.clone() else {
        return Ok(());
    };
    let device = DeviceRef {
        app: event.app,
        environment: event.environment,
        key: &key,
    };
    let known = lock_known(tx, device, circumstances.now).await?;
    let facts = DeviceFacts {
        known: &known,
        click: circumstances.around.click.as_ref(),
        holds_suspicious: circumstances.holds_suspicious,
        policy: circumstances.policy,
        now: circumstances.now,
    };
    let again = Replanning {
        facts: &facts,
        integrations: &circumstances.around.integrations,
        why: DUPLICATE_OF_VERIFIED,
    };
    let app = event.app;
    planned::replan(tx, app, std::slice::from_mut(event), &again, ends).await
}

/// Decides about the SDK events of a stretch of the log that verified events have the ids of. It corrects what counts,
/// and leaves deliveries alone.
pub(crate) async fn rejudge(
    tx: &Tx,
    (app, environment): (AppId, Environment),
    span: (EventId, EventId),
    terms: SdkTerms<'_>,
) -> Result<(), Failure> {
    let names: Vec<&str> = VERIFIABLE_NAMES.to_vec();
    let found = event_rows::find(
        tx,
        "app_id = $1 and environment = $2 and event_id >= $3 and event_id < $4
         and source = $5 and name = any($6)
         and (duplicate_of is not null
              or exists (select 1 from event_keys as taken
                         where taken.app_id = events.app_id and taken.environment = events.environment
                           and taken.source = $7 and taken.given_id = events.given_id
                           and taken.fingerprint is not null)
              or exists (select 1 from billing_keys as billed
                         where billed.app_id = events.app_id and billed.environment = events.environment
                           and billed.lookup_key = $8 || events.given_id))",
        &[
            &uuid(app.as_bytes()),
            &environment.as_str(),
            &uuid(span.0.as_bytes()),
            &uuid(span.1.as_bytes()),
            &EventSource::Sdk.as_str(),
            &names,
            &EventSource::Web.as_str(),
            &transaction_key("").as_str(),
        ],
    )
    .await?;
    if found.is_empty() {
        return Ok(());
    }
    let at = Timestamp::from_millis(0);
    let locked = lock_reported(tx, &found.iter().collect::<Vec<_>>(), at).await?;
    let ids = column(&found, |event| (app, environment, event.given_id.as_str()));
    let verified: BTreeMap<_, _> = verified(tx, &ids).await?;
    let settled = locked.into_values().filter_map(|event| {
        let holders = verified.get(&(app, environment, event.given_id.as_str()));
        let holders = holders.map_or(&[][..], Vec::as_slice);
        settle(event.clone(), holders, terms)
    });
    let corrected = settled.map(|Replacement { before, after }| Event {
        skipped: before.skipped,
        ..after
    });
    let corrected: Vec<Event> = corrected.collect();
    if corrected.is_empty() {
        return Ok(());
    }
    event_rows::replace_all(tx, &corrected).await
}
