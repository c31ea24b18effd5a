//! Claims of App Store ids.

use crate::Failure;
use crate::rows::read_row;
use crate::tables::SqliteTables;
use rusqlite::params;
use tributary_domain::ownership::store_id::{STORE_ID_CLAIMS_MAX, StoreIdClaim, StoreIdProof};
use tributary_domain::vocabulary::id::AppId;
use tributary_recording::StoreIdTable;
use tributary_store::records::{Columns, StoreIdClaimRow};

impl StoreIdTable for SqliteTables<'_> {
    async fn lock_store_id(&self, _: &str) -> Result<(), Failure> {
        Ok(())
    }

    async fn store_id_claims(&self, app_store_id: &str) -> Result<Vec<StoreIdClaim>, Failure> {
        let sql = format!(
            "select {} from app_store_claims where app_store_id = ?1 order by app_id limit ?2",
            StoreIdClaimRow::COLUMNS
        );
        let rows: Vec<StoreIdClaimRow> = self
            .0
            .prepare_cached(&sql)?
            .query_map(
                params![app_store_id, STORE_ID_CLAIMS_MAX],
                read_row::<StoreIdClaimRow>,
            )?
            .collect::<Result<_, _>>()?;
        rows.into_iter().map(|row| Ok(row.read()?)).collect()
    }

    async fn insert_store_id_claim(
        &self,
        app_store_id: &str,
        claim: &StoreIdClaim,
    ) -> Result<(), Failure> {
        self.0.execute(
            "insert into app_store_claims
                 (app_store_id, app_id, organization_id, claimed_at, proof, has_postback)
             values (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                app_store_id,
                claim.app.as_bytes(),
                claim.organization.as_bytes(),
                claim.claimed_at.as_millis(),
                claim.proof.map(StoreIdProof::as_str),
                claim.has_postback
            ],
        )?;
        Ok(())
    }

    async fn remove_store_id_claim(&self, app_store_id: &str, app: AppId) -> Result<(), Failure> {
        self.0.execute(
            "delete from app_store_claims where app_store_id = ?1 and app_id = ?2",
            params![app_store_id, app.as_bytes()],
        )?;
        Ok(())
    }

    async fn write_store_id_proof(
        &self,
        app_store_id: &str,
        app: AppId,
        proof: Option<StoreIdProof>,
    ) -> Result<(), Failure> {
        self.0.execute(
            "update app_store_claims set proof = ?3 where app_store_id = ?1 and app_id = ?2",
            params![
                app_store_id,
                app.as_bytes(),
                proof.map(StoreIdProof::as_str)
            ],
        )?;
        Ok(())
    }

    async fn write_receiver(&self, app_store_id: &str, app: Option<AppId>) -> Result<(), Failure> {
        match app {
            None => self.0.execute(
                "delete from app_store_ids where app_store_id = ?1",
                [app_store_id],
            )?,
            Some(app) => self.0.execute(
                "insert into app_store_ids (app_store_id, app_id) values (?1, ?2)
                 on conflict (app_store_id) do update set app_id = excluded.app_id",
                params![app_store_id, app.as_bytes()],
            )?,
        };
        Ok(())
    }
}
