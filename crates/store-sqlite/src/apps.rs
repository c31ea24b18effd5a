//! Apps.

use crate::rows::{
    APP_COLUMNS, app_list, app_secrets, find_app, page_start, read_row, require_app,
};
use crate::tables::{SqliteTables, run};
use crate::{Failure, SqliteStore, postbacks};
use async_trait::async_trait;
use rusqlite::{OptionalExtension, params};
use std::sync::atomic::Ordering;
use tributary_domain::access::{AnalyticsRead, AppsRead, AppsWrite, Authorized, Environment};
use tributary_domain::app::{App, AppChange, AppSecret, SdkKey, SdkKeyEnd, SdkKeyRotation};
use tributary_domain::audit::AuditContext;
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::ownership::store_id::StoreIdProof;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::timezone::Timezone;
use tributary_domain::vocabulary::web_url::HostName;
use tributary_recording::ManagedAppTable;
use tributary_recording::admin::{
    create_app, end_replaced_sdk_key, prove_store_id, rotate_sdk_key, set_link_domain_verified,
    update_app,
};
use tributary_store::records::{AppRow, Columns, SdkKeyRow};
use tributary_store::{APP_NAMES_MAX, AppName, Apps, StoreResult};

impl ManagedAppTable for SqliteTables<'_> {
    async fn lock_managed_app(
        &self,
        organization: OrganizationId,
        app: AppId,
    ) -> Result<App, Failure> {
        find_app(self.0, organization, app)
    }

    async fn require_app(&self, organization: OrganizationId, app: AppId) -> Result<(), Failure> {
        require_app(self.0, organization, app)
    }

    async fn insert_app(&self, app: &App) -> Result<(), Failure> {
        let row = AppRow::write(app);
        self.0.execute(
            "insert into apps (app_id, organization_id, name, archived, settings, created_at,
                               updated_at, revision)
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![
                row.app_id,
                row.organization_id,
                row.name,
                row.archived,
                row.settings,
                row.created_at,
                row.updated_at,
                row.revision
            ],
        )?;
        for (key, environment) in app.sdk.keys() {
            self.insert_sdk_key(app.id, key, environment).await?;
        }
        Ok(())
    }

    async fn sdk_keys_of(&self, app: AppId) -> Result<Vec<SdkKey>, Failure> {
        let sql = format!(
            "select {} from sdk_keys where app_id = ?1
             order by environment, expires_at is not null, expires_at desc, sdk_key",
            SdkKeyRow::COLUMNS
        );
        let mut find = self.0.prepare_cached(&sql)?;
        let rows = find.query_map([app.as_bytes()], read_row::<SdkKeyRow>)?;
        rows.map(|row| Ok(row?.read()?)).collect()
    }

    async fn insert_sdk_key(
        &self,
        app: AppId,
        key: &str,
        environment: Environment,
    ) -> Result<(), Failure> {
        self.0.execute(
            "insert into sdk_keys (sdk_key, app_id, environment) values (?1, ?2, ?3)",
            params![key, app.as_bytes(), environment.as_str()],
        )?;
        Ok(())
    }

    async fn end_sdk_key(&self, app: AppId, end: &SdkKeyEnd) -> Result<(), Failure> {
        self.0.execute(
            "update sdk_keys set expires_at = ?3 where app_id = ?1 and sdk_key = ?2",
            params![app.as_bytes(), end.text, end.expires_at.as_millis()],
        )?;
        Ok(())
    }

    async fn remove_sdk_key(&self, app: AppId, key: &str) -> Result<(), Failure> {
        self.0.execute(
            "delete from sdk_keys where app_id = ?1 and sdk_key = ?2",
            params![app.as_bytes(), key],
        )?;
        Ok(())
    }

    async fn write_app(&self, app: &App) -> Result<(), Failure> {
        let row = AppRow::write(app);
        self.0
            .prepare_cached(
                "update apps set name = ?2, archived = ?3, settings = ?4, updated_at = ?5,
                                 revision = ?6
                 where app_id = ?1",
            )?
            .execute(params![
                row.app_id,
                row.name,
                row.archived,
                row.settings,
                row.updated_at,
                row.revision
            ])?;
        Ok(())
    }

    async fn claim_link_domain(&self, app: AppId, host: &str) -> Result<bool, Failure> {
        let claimed = self.0.execute(
            "insert into link_domains (link_domain, app_id) values (?1, ?2)
             on conflict (link_domain) do update set app_id = app_id where app_id = ?2",
            params![host, app.as_bytes()],
        )?;
        Ok(claimed == 1)
    }

    async fn release_link_domains(&self, app: AppId, except: Option<&str>) -> Result<(), Failure> {
        self.0.execute(
            "delete from link_domains where app_id = ?1 and link_domain is not ?2",
            params![app.as_bytes(), except],
        )?;
        Ok(())
    }

    async fn claim_postbacks(
        &self,
        app: AppId,
        app_store_id: &str,
        limit: u32,
    ) -> Result<(), Failure> {
        postbacks::claim(self.0, app, app_store_id, limit)?;
        Ok(())
    }

    async fn write_secret(
        &self,
        app: AppId,
        secret: AppSecret,
        sealed: &SealedSecret,
        at: Timestamp,
    ) -> Result<(), Failure> {
        self.0.execute(
            "insert into app_secrets (app_id, name, sealed, set_at) values (?1, ?2, ?3, ?4)
             on conflict (app_id, name)
             do update set sealed = excluded.sealed, set_at = excluded.set_at",
            params![
                app.as_bytes(),
                secret.as_str(),
                sealed.as_bytes(),
                at.as_millis()
            ],
        )?;
        Ok(())
    }

    async fn copy_secret(
        &self,
        app: AppId,
        from: AppSecret,
        to: AppSecret,
        at: Timestamp,
    ) -> Result<(), Failure> {
        self.0.execute(
            "insert into app_secrets (app_id, name, sealed, set_at)
             select app_id, ?3, sealed, ?4 from app_secrets where app_id = ?1 and name = ?2
             on conflict do update set sealed = excluded.sealed, set_at = excluded.set_at",
            params![app.as_bytes(), from.as_str(), to.as_str(), at.as_millis()],
        )?;
        Ok(())
    }

    async fn remove_secret(&self, app: AppId, secret: AppSecret) -> Result<(), Failure> {
        self.0.execute(
            "delete from app_secrets where app_id = ?1 and name = ?2",
            params![app.as_bytes(), secret.as_str()],
        )?;
        Ok(())
    }
}

/// Returns a condition on the list of apps in the third parameter. Without a limit, the parameter is
/// null.
const fn only_apps(is_limited: bool) -> &'static str {
    if is_limited {
        "and app_id in (select unhex(value) from json_each(?3))"
    } else {
        "and ?3 is null"
    }
}

#[async_trait]
impl Apps for SqliteStore {
    async fn create_app(
        &self,
        caller: &Authorized<AppsWrite>,
        app: App,
        secrets: Vec<(AppSecret, SealedSecret)>,
        origin: AuditContext,
    ) -> StoreResult<App> {
        let organization = caller.whole_organization()?;
        self.write("create_app", move |connection| {
            let tables = SqliteTables(connection);
            run(create_app(&tables, organization, &app, &secrets, &origin))?;
            Ok(app)
        })
        .await
    }

    async fn app(&self, caller: &Authorized<AppsRead>, app: AppId) -> StoreResult<App> {
        let organization = caller.organization_of(app)?;
        self.read("app", move |connection| {
            find_app(connection, organization, app)
        })
        .await
    }

    async fn app_timezone(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
    ) -> StoreResult<Timezone> {
        let organization = caller.organization_of(app)?;
        self.read("app_timezone", move |connection| {
            find_app(connection, organization, app).map(|app| app.timezone)
        })
        .await
    }

    async fn app_names(&self, caller: &Authorized<AnalyticsRead>) -> StoreResult<Vec<AppName>> {
        let (organization, limit) = caller.organization_and_apps();
        let apps = limit.apps().map(|apps| app_list(&apps));
        self.read("app_names", move |connection| {
            let sql = format!(
                "select {APP_COLUMNS} from apps where organization_id = ?1 {}
                 order by app_id desc limit ?2",
                only_apps(apps.is_some())
            );
            let rows: Vec<AppRow> = connection
                .prepare_cached(&sql)?
                .query_map(
                    params![organization.as_bytes(), APP_NAMES_MAX, apps],
                    read_row::<AppRow>,
                )?
                .collect::<Result<_, _>>()?;
            Ok(rows
                .into_iter()
                .map(AppRow::read_name)
                .collect::<Result<_, _>>()?)
        })
        .await
    }

    async fn apps(
        &self,
        caller: &Authorized<AppsRead>,
        with_archived: bool,
        page: PageRequest,
    ) -> StoreResult<Page<App>> {
        let (organization, limit) = caller.organization_and_apps();
        let apps = limit.apps().map(|apps| app_list(&apps));
        self.read("apps", move |connection| {
            let sql = format!(
                "select {APP_COLUMNS} from apps where organization_id = ?1 {}
                   and app_id < ?2 and archived <= ?5
                 order by app_id desc limit ?4",
                only_apps(apps.is_some())
            );
            let rows: Vec<AppRow> = connection
                .prepare_cached(&sql)?
                .query_map(
                    params![
                        organization.as_bytes(),
                        page_start(page.before),
                        apps,
                        page.limit.rows(),
                        with_archived
                    ],
                    read_row::<AppRow>,
                )?
                .collect::<Result<_, _>>()?;
            let read = |row: AppRow| {
                let secrets = app_secrets(connection, AppId::from_bytes(row.app_id))?;
                Ok::<_, Failure>(row.read(secrets)?)
            };
            let apps = rows.into_iter().map(read).collect::<Result<_, _>>()?;
            Ok(Page::from_rows(apps, page.limit))
        })
        .await
    }

    async fn update_app(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        change: AppChange,
        precondition: Precondition,
        origin: AuditContext,
    ) -> StoreResult<App> {
        let organization = caller.organization_of(app)?;
        self.write_invalidating("update_app", move |connection| {
            let of = (organization, app);
            let tables = SqliteTables(connection);
            run(update_app(&tables, of, &change, &precondition, &origin))
        })
        .await
    }

    async fn sdk_keys(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
    ) -> StoreResult<Vec<SdkKey>> {
        let organization = caller.organization_of(app)?;
        self.read("sdk_keys", move |connection| {
            require_app(connection, organization, app)?;
            run(SqliteTables(connection).sdk_keys_of(app))
        })
        .await
    }

    async fn rotate_sdk_key(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        rotation: SdkKeyRotation,
        origin: AuditContext,
    ) -> StoreResult<App> {
        let organization = caller.organization_of(app)?;
        self.write_invalidating("rotate_sdk_key", move |connection| {
            let of = (organization, app);
            let tables = SqliteTables(connection);
            run(rotate_sdk_key(&tables, of, &rotation, &origin))
        })
        .await
    }

    async fn revoke_sdk_key(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        key: String,
        origin: AuditContext,
    ) -> StoreResult<()> {
        let organization = caller.organization_of(app)?;
        self.write_invalidating("revoke_sdk_key", move |connection| {
            let of = (organization, app);
            let tables = SqliteTables(connection);
            run(end_replaced_sdk_key(&tables, of, &key, &origin))
        })
        .await
    }

    async fn note_sdk_key_use(&self, app: AppId, key: &str, at: Timestamp) -> StoreResult<()> {
        let key = key.to_owned();
        self.write_keeping_cache("note_sdk_key_use", move |connection| {
            connection.execute(
                "update sdk_keys set last_used_at = ?3
                 where app_id = ?1 and sdk_key = ?2
                     and (last_used_at is null or last_used_at < ?3)",
                params![app.as_bytes(), key, at.as_millis()],
            )?;
            Ok(())
        })
        .await
    }

    async fn set_link_domain_verified(
        &self,
        caller: &Authorized<AppsWrite>,
        app: AppId,
        host: HostName,
        is_verified: bool,
        origin: AuditContext,
    ) -> StoreResult<App> {
        let organization = caller.organization_of(app)?;
        self.write_invalidating("set_link_domain_verified", move |connection| {
            let tables = SqliteTables(connection);
            let of = (organization, app);
            run(set_link_domain_verified(
                &tables,
                of,
                &host,
                is_verified,
                &origin,
            ))
        })
        .await
    }

    async fn prove_store_id(
        &self,
        app: AppId,
        app_store_id: &str,
        proof: StoreIdProof,
        origin: AuditContext,
    ) -> StoreResult<bool> {
        let id = app_store_id.to_owned();
        let outcome = self
            .write("prove_store_id", move |connection| {
                let tables = SqliteTables(connection);
                run(prove_store_id(&tables, app, &id, proof, &origin))
            })
            .await;
        // Every App Store notification proves the id again, and changes nothing.
        if !matches!(outcome, Ok(false)) {
            self.changes.fetch_add(1, Ordering::SeqCst);
        }
        outcome
    }

    async fn app_secret(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        secret: AppSecret,
    ) -> StoreResult<Option<SealedSecret>> {
        let organization = caller.organization_of(app)?;
        self.read("app_secret", move |connection| {
            require_app(connection, organization, app)?;
            let sealed: Option<Vec<u8>> = connection
                .prepare_cached("select sealed from app_secrets where app_id = ?1 and name = ?2")?
                .query_row(params![app.as_bytes(), secret.as_str()], |row| row.get(0))
                .optional()?;
            Ok(sealed.map(SealedSecret::from_bytes))
        })
        .await
    }
}
