//! `AppTable`: apps, integrations and rates as `recording` reads them.

use crate::rates::imported_rates;
use crate::rows::{app_by_id, id, uuid};
use crate::tx::Tx;
use crate::{Failure, integrations};
use std::collections::BTreeSet;
use std::sync::Arc;
use tributary_domain::app::{App, AppSecret};
use tributary_domain::exchange::ImportedRates;
use tributary_domain::integration::Integration;
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::{AppTable, Conflict, EngineTransaction, Tables};

impl EngineTransaction for Tx {
    type Failure = Failure;
}

impl Tables for Tx {}

impl From<Conflict> for Failure {
    fn from(_: Conflict) -> Self {
        Self::Conflict
    }
}

impl AppTable for Tx {
    async fn app(&self, app: AppId) -> Result<Option<App>, Failure> {
        app_by_id(self, uuid(app.as_bytes())).await
    }

    async fn app_ids(&self) -> Result<Vec<AppId>, Failure> {
        let rows = self.query("select app_id from apps", &[]).await?;
        rows.iter()
            .map(|row| Ok(AppId::from_bytes(id(row, 0)?)))
            .collect()
    }

    async fn lock_app(&self, app: AppId) -> Result<(), Failure> {
        let sql = "select 1 from apps where app_id = $1 for no key update";
        self.query_opt(sql, &[&uuid(app.as_bytes())]).await?;
        Ok(())
    }

    async fn lock_app_shared(&self, app: AppId) -> Result<(), Failure> {
        let sql = "select 1 from apps where app_id = $1 for share";
        self.query_opt(sql, &[&uuid(app.as_bytes())]).await?;
        Ok(())
    }

    async fn mark_provider_connected(
        &self,
        app: AppId,
        by: AppSecret,
        at: Timestamp,
    ) -> Result<bool, Failure> {
        let new = self
            .query_opt(
                "insert into app_secrets (app_id, name, sealed, set_at) values ($1, $2, '', $3)
                 on conflict (app_id, name) do nothing returning app_id",
                &[&uuid(app.as_bytes()), &by.as_str(), &at.as_millis()],
            )
            .await?;
        Ok(new.is_some())
    }

    async fn integrations(&self, app: AppId) -> Result<Arc<[Integration]>, Failure> {
        let mut touched = integrations::find_configured(self, &BTreeSet::from([app])).await?;
        Ok(touched.remove(&app).unwrap_or_default())
    }

    async fn rates(&self, wanted: &[(Currency, Day)]) -> Result<ImportedRates, Failure> {
        imported_rates(self, wanted).await
    }
}
