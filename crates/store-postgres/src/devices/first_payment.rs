//! A device's first payment: the earliest one that counts, by its own time.

use super::DeviceRef;
use crate::rows::uuid;
use crate::tx::Tx;
use crate::{Failure, event_rows};
use tributary_domain::access::Environment;
use tributary_domain::device::DeviceKey;
use tributary_domain::event::Event;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::id::AppId;

/// The SQL of [`Event::is_payment`].
const IS_PAYMENT: &str = "usd_micros > 0 and uncounted is null
     and (source <> 'billing' or name in ('purchase', 'subscribe', 'renewal'))";

/// Moves the flag of a device's first payment to its earliest payment that counts. A placeholder is not a device, and has
/// none. The device is locked.
pub(crate) async fn settle_first_payment(
    tx: &Tx,
    (app, environment): (AppId, Environment),
    key: &DeviceKey,
    increments: &mut Increments,
) -> Result<(), Failure> {
    let device = DeviceRef {
        app,
        environment,
        key,
    };
    let (app, environment, key) = device.columns();
    let of_device = "app_id = $1 and environment = $2 and device_id = $3";
    let flagged = format!("{of_device} and first_payment");
    let first = format!("{of_device} and {IS_PAYMENT} order by event_id limit 1");
    let mut changed = event_rows::find(tx, &flagged, &[&app, &environment, &key]).await?;
    let first = event_rows::find(tx, &first, &[&app, &environment, &key])
        .await?
        .pop();
    let first = first.filter(|event| event.payer().is_some());
    let noted = first.as_ref().map(|event| event.id);
    let is_first = |event: &Event| Some(event.id) == noted;
    if changed.iter().any(is_first) {
        changed.retain(|event| !is_first(event));
    } else {
        changed.extend(first);
    }
    for before in &mut changed {
        let mut now = before.clone();
        now.first_payment = !before.first_payment;
        increments.replace_event(before, &now);
        *before = now;
    }
    if !changed.is_empty() {
        event_rows::write_first_payments(tx, &changed).await?;
    }
    tx.execute(
        "update identities set first_payment_id = $4
         where app_id = $1 and environment = $2 and device_id = $3
           and first_payment_id is distinct from $4",
        &[
            &app,
            &environment,
            &key,
            &noted.map(|id| uuid(id.as_bytes())),
        ],
    )
    .await?;
    Ok(())
}
