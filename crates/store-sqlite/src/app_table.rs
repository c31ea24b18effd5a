//! `AppTable`: apps, integrations and rates as `recording` reads them.

use crate::rates::imported_rates;
use crate::rows::app_by_id;
use crate::tables::SqliteTables;
use crate::{Failure, integrations};
use rusqlite::params;
use std::sync::Arc;
use tributary_domain::app::{App, AppSecret};
use tributary_domain::exchange::ImportedRates;
use tributary_domain::integration::Integration;
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::AppTable;

impl AppTable for SqliteTables<'_> {
    async fn app(&self, app: AppId) -> Result<Option<App>, Failure> {
        app_by_id(self.0, app)
    }

    async fn app_ids(&self) -> Result<Vec<AppId>, Failure> {
        let mut find = self.0.prepare_cached("select app_id from apps")?;
        let ids = find.query_map((), |row| Ok(AppId::from_bytes(row.get(0)?)))?;
        Ok(ids.collect::<Result<_, _>>()?)
    }

    async fn lock_app(&self, _: AppId) -> Result<(), Failure> {
        Ok(())
    }

    async fn lock_app_shared(&self, _: AppId) -> Result<(), Failure> {
        Ok(())
    }

    async fn mark_provider_connected(
        &self,
        app: AppId,
        by: AppSecret,
        at: Timestamp,
    ) -> Result<bool, Failure> {
        let inserted = self
            .0
            .prepare_cached(
                "insert into app_secrets (app_id, name, sealed, set_at) values (?1, ?2, x'', ?3)
                 on conflict do nothing",
            )?
            .execute(params![app.as_bytes(), by.as_str(), at.as_millis()])?;
        Ok(inserted == 1)
    }

    async fn integrations(&self, app: AppId) -> Result<Arc<[Integration]>, Failure> {
        Ok(integrations::find_configured(self.0, app)?.into())
    }

    async fn rates(&self, wanted: &[(Currency, Day)]) -> Result<ImportedRates, Failure> {
        imported_rates(self.0, wanted.iter().copied())
    }
}
