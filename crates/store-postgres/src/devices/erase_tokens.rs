//! Proofs of the tokens with which users erase their devices.

use super::DeviceColumns;
use crate::Failure;
use crate::params::column;
use crate::tx::Tx;
use std::collections::BTreeMap;
use tributary_domain::device::{DeviceKey, DeviceRef};
use tributary_domain::install::ConfigureCommand;
use tributary_domain::vocabulary::digest::Digest;
use tributary_recording::EraseTokenTable;
use tributary_store::StoreError;

/// Stores the proofs in calls, except those of devices that have one.
pub(crate) async fn insert(tx: &Tx, commands: &[&ConfigureCommand]) -> Result<(), Failure> {
    // A sorted map, because all transactions insert in key order.
    let proofs = commands.iter().filter_map(|command| {
        let proof = command.erase_proof.as_ref()?;
        Some((command.device_ref(), proof))
    });
    let proofs: BTreeMap<DeviceRef<'_>, &Digest> = proofs.collect();
    if proofs.is_empty() {
        return Ok(());
    }
    let proofs: Vec<(DeviceRef<'_>, &Digest)> = proofs.into_iter().collect();
    tx.execute(
        "insert into erase_tokens (app_id, environment, device_id, proof)
         select * from unnest($1, $2, $3, $4)
         on conflict (app_id, environment, device_id) do nothing",
        &[
            &column(&proofs, |(device, _)| device.app()),
            &column(&proofs, |(device, _)| device.environment.as_str()),
            &column(&proofs, |(device, _)| device.device()),
            &column(&proofs, |(_, proof)| proof.as_bytes().as_slice()),
        ],
    )
    .await?;
    Ok(())
}

impl EraseTokenTable for Tx {
    async fn insert_erase_proof(&self, command: &ConfigureCommand) -> Result<(), Failure> {
        insert(self, &[command]).await
    }

    async fn erase_proofs(
        &self,
        device: DeviceRef<'_>,
        proof: &Digest,
    ) -> Result<Vec<Digest>, Failure> {
        let (app, environment, key) = device.columns();
        let rows = self
            .query(
                "select proof from erase_tokens
                 where app_id = $1 and environment = $2 and (device_id = $3 or proof = $4)",
                &[&app, &environment, &key, &proof.as_bytes().as_slice()],
            )
            .await?;
        let digest = |row: &tokio_postgres::Row| {
            let bytes: &[u8] = row.try_get(0)?;
            let bytes = <[u8; 32]>::try_from(bytes);
            let corrupt = || StoreError::corrupt("erase_tokens", "proof", device.app);
            Ok(Digest::from_bytes(bytes.map_err(|_| corrupt())?))
        };
        rows.iter().map(digest).collect()
    }

    async fn move_erase_proof(
        &self,
        device: DeviceRef<'_>,
        key: &DeviceKey,
    ) -> Result<(), Failure> {
        let (app, environment, stored) = device.columns();
        self.execute(
            "update erase_tokens set device_id = $4
             where app_id = $1 and environment = $2 and device_id = $3",
            &[&app, &environment, &stored, &key.as_str()],
        )
        .await?;
        Ok(())
    }
}
