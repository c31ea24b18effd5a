//! Proofs of the tokens with which users erase their devices.

use crate::Failure;
use crate::tables::SqliteTables;
use rusqlite::params;
use tributary_domain::device::{DeviceKey, DeviceRef};
use tributary_domain::install::ConfigureCommand;
use tributary_domain::vocabulary::digest::Digest;
use tributary_recording::EraseTokenTable;

impl EraseTokenTable for SqliteTables<'_> {
    async fn insert_erase_proof(&self, command: &ConfigureCommand) -> Result<(), Failure> {
        let proof = command.erase_proof.as_ref();
        self.0
            .prepare_cached(
                "insert into erase_tokens (app_id, environment, device_id, proof)
                 values (?1, ?2, ?3, ?4) on conflict do nothing",
            )?
            .execute(params![
                command.app.as_bytes(),
                command.environment.as_str(),
                command.device.as_str(),
                proof.map(|proof| proof.as_bytes().as_slice())
            ])?;
        Ok(())
    }

    async fn erase_proofs(
        &self,
        device: DeviceRef<'_>,
        proof: &Digest,
    ) -> Result<Vec<Digest>, Failure> {
        let mut find = self.0.prepare_cached(
            "select proof from erase_tokens
             where app_id = ?1 and environment = ?2 and (device_id = ?3 or proof = ?4)",
        )?;
        let values = params![
            device.app.as_bytes(),
            device.environment.as_str(),
            device.key.as_str(),
            proof.as_bytes().as_slice()
        ];
        let found = find.query_map(values, |row| Ok(Digest::from_bytes(row.get(0)?)))?;
        Ok(found.collect::<Result<_, _>>()?)
    }

    async fn move_erase_proof(
        &self,
        device: DeviceRef<'_>,
        key: &DeviceKey,
    ) -> Result<(), Failure> {
        self.0
            .prepare_cached(
                "update erase_tokens set device_id = ?4
                 where app_id = ?1 and environment = ?2 and device_id = ?3",
            )?
            .execute(params![
                device.app.as_bytes(),
                device.environment.as_str(),
                device.key.as_str(),
                key.as_str()
            ])?;
        Ok(())
    }
}
