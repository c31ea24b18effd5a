//! Claims of App Store ids.

use crate::Failure;
use crate::rows::{read_row, uuid};
use crate::tx::Tx;
use tributary_domain::ownership::store_id::{STORE_ID_CLAIMS_MAX, StoreIdClaim, StoreIdProof};
use tributary_domain::vocabulary::id::AppId;
use tributary_recording::StoreIdTable;
use tributary_store::records::{Columns, StoreIdClaimRow};

impl StoreIdTable for Tx {
    async fn lock_store_id(&self, app_store_id: &str) -> Result<(), Failure> {
        // A lock on the claims' rows would not stop a transaction that inserts the first claim.
        let sql = "select pg_advisory_xact_lock(hashtextextended('app_store_id ' || $1, 0))";
        self.query(sql, &[&app_store_id]).await?;
        Ok(())
    }

    async fn store_id_claims(&self, app_store_id: &str) -> Result<Vec<StoreIdClaim>, Failure> {
        let sql = format!(
            "select {} from app_store_claims where app_store_id = $1 order by app_id limit $2",
            StoreIdClaimRow::COLUMNS
        );
        let limit = i64::from(STORE_ID_CLAIMS_MAX);
        let rows = self.query(&sql, &[&app_store_id, &limit]).await?;
        rows.iter()
            .map(|row| Ok(read_row::<StoreIdClaimRow>(row)?.read()?))
            .collect()
    }

    async fn insert_store_id_claim(
        &self,
        app_store_id: &str,
        claim: &StoreIdClaim,
    ) -> Result<(), Failure> {
        self.execute(
            "insert into app_store_claims
                 (app_store_id, app_id, organization_id, claimed_at, proof, has_postback)
             values ($1, $2, $3, $4, $5, $6)",
            &[
                &app_store_id,
                &uuid(claim.app.as_bytes()),
                &uuid(claim.organization.as_bytes()),
                &claim.claimed_at.as_millis(),
                &claim.proof.map(StoreIdProof::as_str),
                &claim.has_postback,
            ],
        )
        .await?;
        Ok(())
    }

    async fn remove_store_id_claim(&self, app_store_id: &str, app: AppId) -> Result<(), Failure> {
        self.execute(
            "delete from app_store_claims where app_store_id = $1 and app_id = $2",
            &[&app_store_id, &uuid(app.as_bytes())],
        )
        .await?;
        Ok(())
    }

    async fn write_store_id_proof(
        &self,
        app_store_id: &str,
        app: AppId,
        proof: Option<StoreIdProof>,
    ) -> Result<(), Failure> {
        self.execute(
            "update app_store_claims set proof = $3 where app_store_id = $1 and app_id = $2",
            &[
                &app_store_id,
                &uuid(app.as_bytes()),
                &proof.map(StoreIdProof::as_str),
            ],
        )
        .await?;
        Ok(())
    }

    async fn write_receiver(&self, app_store_id: &str, app: Option<AppId>) -> Result<(), Failure> {
        let Some(app) = app else {
            let sql = "delete from app_store_ids where app_store_id = $1";
            self.execute(sql, &[&app_store_id]).await?;
            return Ok(());
        };
        self.execute(
            "insert into app_store_ids (app_store_id, app_id) values ($1, $2)
             on conflict (app_store_id) do update set app_id = excluded.app_id",
            &[&app_store_id, &uuid(app.as_bytes())],
        )
        .await?;
        Ok(())
    }
}
