//! Tokens to be redeemed at Apple's. A lease is a due time in the future; settling names it.

use super::known::{lock_known, update_device};
use crate::event_rows::Anew;
use crate::outbox::ends::Ends;
use crate::params::column;
use crate::rows::{app_by_id, id, uuid};
use crate::tx::Tx;
use crate::{Failure, candidates, devices::DeviceRef, event_rows, planned, rollups};
use std::collections::BTreeMap;
use tokio_postgres::Row;
use tributary_domain::access::Environment;
use tributary_domain::app::FraudPolicy;
use tributary_domain::attribution::ad_services::AdServices;
use tributary_domain::device::DeviceKey;
use tributary_domain::forwarding::plan::DeviceFacts;
use tributary_domain::install::{AdServicesAnswer, Configure, Known, ad_services_answered};
use tributary_domain::ledger::sdk_policy;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{LeasedToken, StoreError, TokenOutcome};
use uuid::Uuid;

/// Keeps the token that a device sent, unless there is one of it already.
pub(super) async fn enqueue(tx: &Tx, command: &Configure) -> Result<(), Failure> {
    tx.execute(
        "insert into ad_services_tokens (app_id, environment, device_id, token, received_at,
                                         attempts, due_at)
         values ($1, $2, $3, $4, $5, 0, $5)
         on conflict (app_id, environment, device_id) do nothing",
        &[
            &uuid(command.app.as_bytes()),
            &command.environment.as_str(),
            &command.device.as_str(),
            &command.ad_services_token,
            &command.at.as_millis(),
        ],
    )
    .await?;
    Ok(())
}

/// A token that is due, and since when.
struct Due {
    token: LeasedToken,
    due_at: i64,
}

impl Due {
    fn read(row: &Row, until: Timestamp) -> Result<Self, Failure> {
        let app = AppId::from_bytes(id(row, 0)?);
        let corrupt = |column| StoreError::corrupt("ad_services_tokens", column, app);
        let attempts: i64 = row.try_get(5)?;
        let token = LeasedToken {
            app,
            environment: Environment::parse(row.try_get(1)?)
                .ok_or_else(|| corrupt("environment"))?,
            device: DeviceKey::stored(row.try_get(2)?),
            token: row.try_get(3)?,
            received_at: Timestamp::from_millis(row.try_get(4)?),
            attempts: u32::try_from(attempts).map_err(|_| corrupt("attempts"))?,
            leased_until: until,
        };
        Ok(Self {
            token,
            due_at: row.try_get(6)?,
        })
    }

    fn app(&self) -> Uuid {
        uuid(self.token.app.as_bytes())
    }
}

/// Leases what is due. It is looked up on all machines, then each row is moved on where it is still as it
/// was found: of two workers one gets it, and nobody waits for a lock on several machines.
pub(super) async fn lease(
    tx: &Tx,
    now: Timestamp,
    until: Timestamp,
    limit: u32,
) -> Result<Vec<LeasedToken>, Failure> {
    let rows = tx
        .query(
            "select app_id, environment, device_id, token, received_at, attempts, due_at
             from ad_services_tokens where due_at <= $1 order by due_at limit $2",
            &[&now.as_millis(), &i64::from(limit)],
        )
        .await?;
    let due: Vec<Due> = rows
        .iter()
        .map(|row| Due::read(row, until))
        .collect::<Result<_, _>>()?;
    if due.is_empty() {
        return Ok(Vec::new());
    }
    let numbers: Vec<i64> = (0..).take(due.len()).collect();
    let leased = tx
        .query(
            "update ad_services_tokens as stored
             set due_at = $6, attempts = stored.attempts + 1
             from unnest($1, $2, $3, $4, $5) as due (app_id, environment, device_id, due_at, number)
             where stored.app_id = due.app_id and stored.environment = due.environment
               and stored.device_id = due.device_id and stored.due_at = due.due_at
             returning due.number",
            &[
                &column(&due, Due::app),
                &column(&due, |due| due.token.environment.as_str()),
                &column(&due, |due| due.token.device.as_str()),
                &column(&due, |due| due.due_at),
                &numbers,
                &until.as_millis(),
            ],
        )
        .await?;
    let mut due: BTreeMap<i64, LeasedToken> = numbers
        .into_iter()
        .zip(due.into_iter().map(|due| due.token))
        .collect();
    let mut kept = BTreeMap::new();
    for row in &leased {
        let number: i64 = row.try_get(0)?;
        kept.extend(due.remove_entry(&number));
    }
    // In the order they were due.
    Ok(kept.into_values().collect())
}

/// Settles a lease that is still held.
pub(super) async fn settle(
    tx: &Tx,
    lease: &LeasedToken,
    outcome: &TokenOutcome,
    at: Timestamp,
) -> Result<bool, Failure> {
    const HELD: &str = "app_id = $1 and environment = $2 and device_id = $3 and due_at = $4";
    let device = DeviceRef {
        app: lease.app,
        environment: lease.environment,
        key: &lease.device,
    };
    let (app, environment, key) = device.columns();
    let leased_until = lease.leased_until.as_millis();
    match outcome {
        TokenOutcome::RetryAt(due_at) => {
            let sql = format!("update ad_services_tokens set due_at = $5 where {HELD}");
            let due_at = due_at.as_millis();
            let params: [&dyn crate::params::Param; 5] =
                [&app, &environment, &key, &leased_until, &due_at];
            Ok(tx.execute(&sql, &params).await? == 1)
        }
        TokenOutcome::Final(answer) => {
            // A device that was erased meanwhile must not come back as a lock.
            let sql = format!("select 1 from ad_services_tokens where {HELD}");
            let params: [&dyn crate::params::Param; 4] = [&app, &environment, &key, &leased_until];
            if tx.query_opt(&sql, &params).await?.is_none() {
                return Ok(false);
            }
            // The device before its token, as `configure` does it.
            let known = lock_known(tx, device, at).await?;
            let sql = format!("delete from ad_services_tokens where {HELD}");
            if tx.execute(&sql, &params).await? == 0 {
                return Err(Failure::Overtaken);
            }
            // Boxed: so many statements under way at a time are large.
            Box::pin(improve(tx, device, known, answer, at)).await?;
            Ok(true)
        }
    }
}

async fn improve(
    tx: &Tx,
    device: DeviceRef<'_>,
    known: Known,
    answer: &AdServices,
    at: Timestamp,
) -> Result<(), Failure> {
    let app = app_by_id(tx, device.app())
        .await?
        .ok_or_else(|| StoreError::corrupt("ad_services_tokens", "app_id", device.app))?;
    let answer = AdServicesAnswer {
        environment: device.environment,
        rules: app.attribution.clone(),
        answer: answer.clone(),
        at,
    };
    let Some(late) = ad_services_answered(&answer, &known) else {
        return Ok(());
    };
    if let Some(before) = &known.device {
        update_device(tx, device, before, &late.attribution).await?;
    }
    if let Some(click) = late.release {
        candidates::release(tx, device, click).await?;
    }
    if late.decided {
        let mut increments = Increments::default();
        let credit = late.attribution.credit();
        let surroundings = planned::surroundings(tx, device.app, &credit).await?;
        let now_known = Known {
            attribution: Some(late.attribution),
            ..known
        };
        let facts = DeviceFacts {
            known: &now_known,
            click: surroundings.click.as_ref(),
            holds_suspicious: app.attribution.fraud == FraudPolicy::Hold,
            policy: sdk_policy(&app),
            now: at,
        };
        let anew = Anew {
            credit: &credit,
            facts: &facts,
            integrations: &surroundings.integrations,
        };
        let mut ends = Ends::default();
        event_rows::recredit(tx, device, &anew, &mut ends, &mut increments).await?;
        ends.count(tx, at).await?;
        rollups::keep(tx, &increments).await?;
    }
    Ok(())
}
