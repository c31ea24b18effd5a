//! A device's first payment.

use crate::tables::Tables;
use crate::tally::TransactionTally;
use tributary_domain::device::DeviceRef;
use tributary_domain::event::first_payment::settle_first_payment as settle;

/// Moves the first-payment flag to the device's earliest counted payment. The caller holds the lock
/// on the device.
pub async fn settle_first_payment<T: Tables>(
    tables: &T,
    device: DeviceRef<'_>,
    tally: &mut TransactionTally,
) -> Result<(), T::Failure> {
    let flagged = tables.flagged_payments(device).await?;
    let earliest = tables.earliest_payment(device).await?;
    let settled = settle(flagged, earliest);
    for moved in &settled.moved {
        tally.increments.replace_event(&moved.before, &moved.after);
    }
    if !settled.moved.is_empty() {
        tables.write_first_payment_flags(&settled.moved).await?;
    }
    let first = settled.first.as_ref();
    tables.write_first_payment(device, first).await
}
