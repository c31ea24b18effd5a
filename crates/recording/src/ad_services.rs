//! Applies Apple's AdServices response to an install after its first attribution decision.

use crate::configure::recredit;
use crate::plan::read_plan_context;
use crate::tables::{Conflict, Tables};
use crate::tally::TransactionTally;
use tributary_domain::attribution::ad_services::AdServices;
use tributary_domain::device::DeviceRef;
use tributary_domain::forwarding::plan::DeviceFacts;
use tributary_domain::install::{AdServicesOutcome, DeviceState, apply_ad_services};
use tributary_domain::ledger::sdk_policy;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{LeasedToken, StoreError, TokenOutcome};

/// Settles a leased token. Returns whether the lease was still held, and the increments for the
/// roll-ups.
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
    // Check the lease before locking the device. Locking inserts the device's id, and the id of an
    // erased device must not reappear.
    if !tables.holds_token(lease).await? {
        return Ok((false, Increments::default()));
    }
    let device = DeviceRef {
        app: lease.app,
        environment: lease.environment,
        key: &lease.device,
    };
    // Lock order as in `configure`: the device before its token.
    let state = tables.lock_device(device, at).await?;
    if !tables.remove_token(lease).await? {
        return Err(Conflict.into());
    }
    let mut tally = TransactionTally::default();
    apply_answer(tables, device, state, answer, at, &mut tally).await?;
    Ok((true, tally.write(tables).await?))
}

async fn apply_answer<T: Tables>(
    tables: &T,
    device: DeviceRef<'_>,
    state: DeviceState,
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
    let Some(update) = apply_ad_services(&answer, &state) else {
        return Ok(());
    };
    if let Some(before) = &state.device {
        tables
            .update_device(device, before, &update.attribution)
            .await?;
    }
    if let Some(click) = update.released_click {
        tables.release_click(device, click).await?;
    }
    if !update.is_replaced {
        return Ok(());
    }
    let credit = update.attribution.credit();
    let plan_context = read_plan_context(tables, device.app, Some(&credit)).await?;
    let new_state = DeviceState {
        attribution: Some(update.attribution),
        ..state
    };
    let facts = DeviceFacts {
        state: &new_state,
        click: plan_context.click.as_ref(),
        policy: sdk_policy(&app),
        now: at,
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
