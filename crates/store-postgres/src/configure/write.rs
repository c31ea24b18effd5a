//! Writes the rows of a batch of `configure` calls, with one statement per table.
//!
//! The devices are already locked. Clicks, which are not, are written in key order.

use crate::billing::people;
use crate::clicks::KeptClicks;
use crate::devices::bulk::NewDevice;
use crate::devices::{bulk, erase_tokens, tokens};
use crate::params::column;
use crate::tx::Tx;
use crate::{Failure, clicks, event_rows};
use tributary_domain::event::{Event, EventKey};
use tributary_recording::ConfigureWrites;

/// Writes the rows, and records the installs whose ids are free. Returns whether each install was
/// recorded.
pub(super) async fn write(
    tx: &Tx,
    writes: &ConfigureWrites<'_>,
    installs: &[&Event],
) -> Result<Vec<bool>, Failure> {
    let new_devices = column(&writes.new_devices, NewDevice::of_call);
    // Pipelined in this order, which the server keeps.
    let (recorded, (), (), (), (), (), (), ()) = tokio::try_join!(
        biased;
        record(tx, installs),
        bulk::insert_devices(tx, &new_devices),
        bulk::update_devices(tx, &writes.devices),
        bulk::write_identities(tx, &writes.identities),
        write_claims(tx, writes),
        write_clicks(tx, writes),
        erase_tokens::insert(tx, &writes.erase_proofs),
        tokens::enqueue(tx, &writes.tokens),
    )?;
    Ok(recorded)
}

/// Claims the ids of installs, and inserts the installs whose ids were free.
async fn record(tx: &Tx, installs: &[&Event]) -> Result<Vec<bool>, Failure> {
    if installs.is_empty() {
        return Ok(Vec::new());
    }
    let keys: Vec<_> = installs
        .iter()
        .map(|install| EventKey::of(install, None))
        .collect();
    let claimed = event_rows::claim(tx, &keys).await?;
    let new = installs.iter().zip(&claimed);
    let new = new.filter(|(_, claimed)| **claimed);
    let new: Vec<&Event> = new.map(|(install, _)| *install).collect();
    event_rows::insert(tx, &new).await?;
    Ok(claimed)
}

/// Writes the claims of users. A device's earlier claims are revoked before the new one is written.
async fn write_claims(tx: &Tx, writes: &ConfigureWrites<'_>) -> Result<(), Failure> {
    people::revoke_unsigned(tx, &writes.revoked).await?;
    people::link_users(tx, &writes.claims).await
}

/// Writes which devices claim which clicks.
async fn write_clicks(tx: &Tx, writes: &ConfigureWrites<'_>) -> Result<(), Failure> {
    clicks::release(tx, &writes.released_clicks).await?;
    let kept = writes.kept_clicks.iter().map(|key| (*key, None));
    let mut kept: KeptClicks<'_> = kept.collect();
    for (device, click) in &writes.taken_clicks {
        kept.insert((device.app, *click), Some(device.key.as_str()));
    }
    clicks::keep(tx, &kept).await
}
