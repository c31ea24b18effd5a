//! Tokens to be redeemed at Apple's. A lease is a due time in the future; settling names it.

use super::known::{Recredited, find_known, recredit, update_device};
use crate::rows::{APP_COLUMNS, app_row, app_secrets};
use crate::{Failure, candidates, planned};
use rusqlite::{Connection, params};
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

pub(super) fn enqueue(connection: &Connection, command: &Configure) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "insert into ad_services_tokens (app_id, environment, device_id, token, received_at,
                                             attempts, due_at)
             values (?1, ?2, ?3, ?4, ?5, 0, ?5) on conflict do nothing",
        )?
        .execute(params![
            command.app.as_bytes(),
            command.environment.as_str(),
            command.device.as_str(),
            command.ad_services_token,
            command.at.as_millis()
        ])?;
    Ok(())
}

pub(super) fn any_due(connection: &Connection, now: Timestamp) -> Result<bool, Failure> {
    let due = connection
        .prepare_cached("select 1 from ad_services_tokens where due_at <= ?1 limit 1")?
        .exists([now.as_millis()])?;
    Ok(due)
}

pub(super) fn lease(
    connection: &Connection,
    now: Timestamp,
    until: Timestamp,
    limit: u32,
) -> Result<Vec<LeasedToken>, Failure> {
    let mut statement = connection.prepare_cached(
        "update ad_services_tokens set due_at = ?2, attempts = attempts + 1
         where (app_id, environment, device_id) in (
             select app_id, environment, device_id from ad_services_tokens
             where due_at <= ?1 order by due_at limit ?3)
         returning app_id, environment, device_id, token, received_at, attempts",
    )?;
    let rows = statement.query_map(params![now.as_millis(), until.as_millis(), limit], |row| {
        let environment: String = row.get(1)?;
        let leased = LeasedToken {
            app: AppId::from_bytes(row.get(0)?),
            environment: Environment::Live,
            device: DeviceKey::stored(row.get(2)?),
            token: row.get(3)?,
            received_at: Timestamp::from_millis(row.get(4)?),
            attempts: row.get::<_, u32>(5)?.saturating_sub(1),
            leased_until: until,
        };
        Ok((leased, environment))
    })?;
    rows.map(|row| {
        let (leased, environment) = row?;
        let environment = Environment::parse(&environment);
        let corrupt = || StoreError::corrupt("ad_services_tokens", "environment", leased.app);
        let environment = environment.ok_or_else(corrupt)?;
        Ok(LeasedToken {
            environment,
            ..leased
        })
    })
    .collect()
}

pub(super) fn settle(
    connection: &Connection,
    lease: &LeasedToken,
    outcome: TokenOutcome,
    at: Timestamp,
) -> Result<(bool, Increments), Failure> {
    let (app, environment) = (lease.app.as_bytes(), lease.environment.as_str());
    let (device, leased_until) = (lease.device.as_str(), lease.leased_until.as_millis());
    let condition = "where app_id = ?1 and environment = ?2 and device_id = ?3 and due_at = ?4";
    match outcome {
        TokenOutcome::RetryAt(due_at) => {
            let sql = format!("update ad_services_tokens set due_at = ?5 {condition}");
            let values = params![app, environment, device, leased_until, due_at.as_millis()];
            let put_back = connection.prepare_cached(&sql)?.execute(values)? == 1;
            Ok((put_back, Increments::default()))
        }
        TokenOutcome::Final(answer) => {
            let sql = format!("delete from ad_services_tokens {condition}");
            let values = params![app, environment, device, leased_until];
            if connection.prepare_cached(&sql)?.execute(values)? == 0 {
                return Ok((false, Increments::default()));
            }
            let counted = improve(connection, lease, answer, at)?;
            Ok((true, counted))
        }
    }
}

fn improve(
    connection: &Connection,
    lease: &LeasedToken,
    answer: AdServices,
    at: Timestamp,
) -> Result<Increments, Failure> {
    let mut increments = Increments::default();
    let (app, environment, device) = (lease.app, lease.environment, &lease.device);
    let known = find_known(connection, app, environment, device)?;
    let sql = format!("select {APP_COLUMNS} from apps where app_id = ?1");
    let row = connection
        .prepare_cached(&sql)?
        .query_row([app.as_bytes()], app_row)?;
    let settings = row.read(app_secrets(connection, app)?)?;
    let answer = AdServicesAnswer {
        environment,
        rules: settings.attribution.clone(),
        answer,
        at,
    };
    let Some(late) = ad_services_answered(&answer, &known) else {
        return Ok(increments);
    };
    if let Some(before) = &known.device {
        update_device(connection, app, environment, before, &late.attribution)?;
    }
    if let Some(click) = late.release {
        candidates::release(
            connection,
            app.as_bytes(),
            click.as_bytes(),
            device.as_str(),
        )?;
    }
    if late.decided {
        let credit = late.attribution.credit();
        let surroundings = planned::surroundings(connection, app, Some(&credit))?;
        let now_known = Known {
            attribution: Some(late.attribution),
            ..known
        };
        let facts = DeviceFacts {
            known: &now_known,
            click: surroundings.click.as_ref(),
            holds_suspicious: settings.attribution.fraud == FraudPolicy::Hold,
            policy: sdk_policy(&settings),
            now: at,
        };
        let of = Recredited {
            app,
            environment,
            device,
            credit: &credit,
        };
        let integrations = &surroundings.integrations;
        recredit(connection, &of, &facts, integrations, &mut increments)?;
    }
    Ok(increments)
}
