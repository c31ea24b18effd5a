//! What Apple says about an install, after the first decision.

use crate::configure::recredit;
use crate::plan::read_plan_context;
use crate::tables::{Conflict, Tables};
use crate::tally::TransactionTally;
use tributary_domain::app::FraudPolicy;
use tributary_domain::attribution::ad_services::AdServices;
use tributary_domain::device::DeviceRef;
use tributary_domain::forwarding::plan::DeviceFacts;
use tributary_domain::install::{AdServicesOutcome, DeviceState, apply_ad_services};
use tributary_domain::ledger::sdk_policy;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{LeasedToken, StoreError, TokenOutcome};

/// Settles a lease of a token; false when it is not held any more. Returns what is to be added to the reports as well.
pub async fn settle_token<T: Tables>(
    tables: &T,
    lease: &LeasedToken,
    outcome: &TokenOutcome,
    at: Timestamp,
) -> Result<(bool, Increments), T::Failure> {
    let answer = match outcome {
        TokenOutcome::RetryAt(due_at) => {
            let is_held = tables.retry_token(lease, *due_at).await?;
            return Ok((is_held, Increments::default()));
        }
        TokenOutcome::Final(answer) => answer,
    };
    // Locking a device stores its id, and one that was erased meanwhile must not come back.
    if !tables.holds_token(lease).await? {
        return Ok((false, Increments::default()));
    }
    let device = DeviceRef {
        app: lease.app,
        environment: lease.environment,
        key: &lease.device,
    };
    // The device before its token, in the order of `configure`.
    let known = tables.lock_device(device, at).await?;
    if !tables.remove_token(lease).await? {
        return Err(Conflict.into());
    }
    let mut tally = TransactionTally::default();
    apply_answer(tables, device, known, answer, at, &mut tally).await?;
    Ok((true, tally.write(tables).await?))
}

async fn apply_answer<T: Tables>(
    tables: &T,
    device: DeviceRef<'_>,
    known: DeviceState,
    answer: &AdServices,
    at: Timestamp,
    tally: &mut TransactionTally,
) -> Result<(), T::Failure> {
    let missing = || StoreError::corrupt("ad_services_tokens", "app_id", device.app);
    let app = tables.app(device.app).await?.ok_or_else(missing)?;
    let answer = AdServicesOutcome {
        environment: device.environment,
        rules: app.attribution.clone(),
        answer: answer.clone(),
        at,
    };
    let Some(late) = apply_ad_services(&answer, &known) else {
        return Ok(());
    };
    if let Some(before) = &known.device {
        tables
            .update_device(device, before, &late.attribution)
            .await?;
    }
    if let Some(click) = late.released_click {
        tables.release_click(device, click).await?;
    }
    if !late.is_replaced {
        return Ok(());
    }
    let credit = late.attribution.credit();
    let around = read_plan_context(tables, device.app, Some(&credit)).await?;
    let now_known = DeviceState {
        attribution: Some(late.attribution),
        ..known
    };
    let facts = DeviceFacts {
        state: &now_known,
        click: around.click.as_ref(),
        holds_suspicious: app.attribution.fraud == FraudPolicy::Hold,
        policy: sdk_policy(&app),
        now: at,
    };
    recredit(tables, device, &credit, &facts, &around.integrations, tally).await
}
