//! Apps.

use crate::params::column;
use crate::rows::{
    APP_COLUMNS, AppLockMode, Conditions, find_app, read_apps, read_row, require_app, uuid,
};
use crate::tx::Tx;
use crate::{Failure, PostgresStore, postbacks};
use async_trait::async_trait;
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

impl ManagedAppTable for Tx {
    async fn lock_managed_app(
        &self,
        organization: OrganizationId,
        app: AppId,
    ) -> Result<App, Failure> {
        find_app(self, organization, app, AppLockMode::Changing).await
    }

    async fn require_app(&self, organization: OrganizationId, app: AppId) -> Result<(), Failure> {
        require_app(self, organization, app, AppLockMode::Changing).await
    }

    async fn insert_app(&self, app: &App) -> Result<(), Failure> {
        let row = AppRow::write(app);
        self.execute(
            "insert into apps (app_id, organization_id, name, archived, settings, created_at,
                               updated_at, revision)
             values ($1, $2, $3, $4, $5, $6, $7, $8)",
            &[
                &uuid(&row.app_id),
                &uuid(&row.organization_id),
                &row.name,
                &row.archived,
                &row.settings,
                &row.created_at,
                &row.updated_at,
                &row.revision,
            ],
        )
        .await?;
        for (key, environment) in app.sdk.keys() {
            self.insert_sdk_key(app.id, key, environment).await?;
        }
        Ok(())
    }

    async fn sdk_keys_of(&self, app: AppId) -> Result<Vec<SdkKey>, Failure> {
        let sql = format!(
            "select {} from sdk_keys where app_id = $1
             order by environment, expires_at is not null, expires_at desc, sdk_key",
            SdkKeyRow::COLUMNS
        );
        let rows = self.query(&sql, &[&uuid(app.as_bytes())]).await?;
        let key = |row| Ok(read_row::<SdkKeyRow>(row)?.read()?);
        rows.iter().map(key).collect()
    }

    async fn insert_sdk_key(
        &self,
        app: AppId,
        key: &str,
        environment: Environment,
    ) -> Result<(), Failure> {
        self.execute(
            "insert into sdk_keys (sdk_key, app_id, environment) values ($1, $2, $3)",
            &[&key, &uuid(app.as_bytes()), &environment.as_str()],
        )
        .await
    }

    async fn end_sdk_key(&self, app: AppId, end: &SdkKeyEnd) -> Result<(), Failure> {
        self.execute(
            "update sdk_keys set expires_at = $3 where app_id = $1 and sdk_key = $2",
            &[
                &uuid(app.as_bytes()),
                &end.text,
                &end.expires_at.as_millis(),
            ],
        )
        .await
    }

    async fn remove_sdk_key(&self, app: AppId, key: &str) -> Result<(), Failure> {
        self.execute(
            "delete from sdk_keys where app_id = $1 and sdk_key = $2",
            &[&uuid(app.as_bytes()), &key],
        )
        .await
    }

    async fn write_app(&self, app: &App) -> Result<(), Failure> {
        let row = AppRow::write(app);
        self.execute(
            "update apps set name = $2, archived = $3, settings = $4, updated_at = $5, revision = $6
             where app_id = $1",
            &[
                &uuid(&row.app_id),
                &row.name,
                &row.archived,
                &row.settings,
                &row.updated_at,
                &row.revision,
            ],
        )
        .await?;
        Ok(())
    }

    async fn claim_link_domain(&self, app: AppId, host: &str) -> Result<bool, Failure> {
        let app = uuid(app.as_bytes());
        let sql = "insert into link_domains (link_domain, app_id) values ($1, $2)
                   on conflict (link_domain) do nothing returning link_domain";
        if self.query_opt(sql, &[&host, &app]).await?.is_some() {
            return Ok(true);
        }
        let sql = "select 1 from link_domains where link_domain = $1 and app_id = $2";
        Ok(self.query_opt(sql, &[&host, &app]).await?.is_some())
    }

    async fn release_link_domains(&self, app: AppId, except: Option<&str>) -> Result<(), Failure> {
        self.execute(
            "delete from link_domains where app_id = $1 and link_domain is distinct from $2",
            &[&uuid(app.as_bytes()), &except],
        )
        .await?;
        Ok(())
    }

    async fn claim_postbacks(
        &self,
        app: AppId,
        app_store_id: &str,
        limit: u32,
    ) -> Result<(), Failure> {
        postbacks::claim(self, app, app_store_id, limit).await?;
        Ok(())
    }

    async fn write_secret(
        &self,
        app: AppId,
        secret: AppSecret,
        sealed: &SealedSecret,
        at: Timestamp,
    ) -> Result<(), Failure> {
        self.execute(
            "insert into app_secrets (app_id, name, sealed, set_at) values ($1, $2, $3, $4)
             on conflict (app_id, name)
             do update set sealed = excluded.sealed, set_at = excluded.set_at",
            &[
                &uuid(app.as_bytes()),
                &secret.as_str(),
                &sealed.as_bytes(),
                &at.as_millis(),
            ],
        )
        .await?;
        Ok(())
    }

    async fn copy_secret(
        &self,
        app: AppId,
        from: AppSecret,
        to: AppSecret,
        at: Timestamp,
    ) -> Result<(), Failure> {
        self.execute(
            "insert into app_secrets (app_id, name, sealed, set_at)
             select app_id, $3, sealed, $4 from app_secrets where app_id = $1 and name = $2
             on conflict (app_id, name)
             do update set sealed = excluded.sealed, set_at = excluded.set_at",
            &[
                &uuid(app.as_bytes()),
                &from.as_str(),
                &to.as_str(),
                &at.as_millis(),
            ],
        )
        .await?;
        Ok(())
    }

    async fn remove_secret(&self, app: AppId, secret: AppSecret) -> Result<(), Failure> {
        self.execute(
            "delete from app_secrets where app_id = $1 and name = $2",
            &[&uuid(app.as_bytes()), &secret.as_str()],
        )
        .await?;
        Ok(())
    }
}

#[async_trait]
impl Apps for PostgresStore {
    async fn create_app(
        &self,
        caller: &Authorized<AppsWrite>,
        app: App,
        secrets: Vec<(AppSecret, SealedSecret)>,
        origin: AuditContext,
    ) -> StoreResult<App> {
        let organization = caller.whole_organization()?;
        self.write("create_app", async move |tx| {
            create_app(tx, organization, &app, &secrets, &origin).await?;
            Ok(app.clone())
        })
        .await
    }

    async fn app(&self, caller: &Authorized<AppsRead>, app: AppId) -> StoreResult<App> {
        let organization = caller.organization_of(app)?;
        self.read("app", async move |tx| {
            find_app(tx, organization, app, AppLockMode::Reading).await
        })
        .await
    }

    async fn app_timezone(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
    ) -> StoreResult<Timezone> {
        let organization = caller.organization_of(app)?;
        self.read_for(caller, "app_timezone", async move |tx| {
            let app = find_app(tx, organization, app, AppLockMode::Reading).await?;
            Ok(app.timezone)
        })
        .await
    }

    async fn app_names(&self, caller: &Authorized<AnalyticsRead>) -> StoreResult<Vec<AppName>> {
        let (organization, limit) = caller.organization_and_apps();
        let organization = uuid(organization.as_bytes());
        let apps = limit.apps();
        let apps = apps.map(|apps| column(&apps, |app| uuid(app.as_bytes())));
        self.read_for(caller, "app_names", async move |tx| {
            let rows = i64::from(APP_NAMES_MAX);
            let (conditions, params) = Conditions::new("organization_id", &organization)
                .and_any("app_id", apps.as_ref())
                .newest("app_id", &rows);
            let sql = format!("select {APP_COLUMNS} from apps where {conditions}");
            let rows = tx.query(&sql, &params).await?;
            rows.iter()
                .map(|row| Ok(read_row::<AppRow>(row)?.read_name()?))
                .collect()
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
        let organization = uuid(organization.as_bytes());
        let apps = limit.apps();
        let apps = apps.map(|apps| column(&apps, |app| uuid(app.as_bytes())));
        let before = page.before.as_ref().map(uuid);
        self.read("apps", async move |tx| {
            let rows = page.limit.rows();
            let (conditions, params) = Conditions::new("organization_id", &organization)
                .and_any("app_id", apps.as_ref())
                .and("app_id <", before.as_ref())
                .and("archived <=", Some(&with_archived))
                .newest("app_id", &rows);
            let sql = format!("select {APP_COLUMNS} from apps where {conditions}");
            let rows = tx.query(&sql, &params).await?;
            let apps = read_apps(tx, &rows).await?;
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
        self.write_invalidating("update_app", async move |tx| {
            let of = (organization, app);
            update_app(tx, of, &change, &precondition, &origin).await
        })
        .await
    }

    async fn sdk_keys(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
    ) -> StoreResult<Vec<SdkKey>> {
        let organization = caller.organization_of(app)?;
        self.read("sdk_keys", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            tx.sdk_keys_of(app).await
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
        self.write_invalidating("rotate_sdk_key", async move |tx| {
            rotate_sdk_key(tx, (organization, app), &rotation, &origin).await
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
        self.write_invalidating("revoke_sdk_key", async move |tx| {
            end_replaced_sdk_key(tx, (organization, app), &key, &origin).await
        })
        .await
    }

    async fn note_sdk_key_use(&self, app: AppId, key: &str, at: Timestamp) -> StoreResult<()> {
        let key = key.to_owned();
        self.write("note_sdk_key_use", async move |tx| {
            tx.execute(
                "update sdk_keys set last_used_at = $3
                 where app_id = $1 and sdk_key = $2
                     and (last_used_at is null or last_used_at < $3)",
                &[&uuid(app.as_bytes()), &key, &at.as_millis()],
            )
            .await
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
        self.write_invalidating("set_link_domain_verified", async move |tx| {
            let of = (organization, app);
            set_link_domain_verified(tx, of, &host, is_verified, &origin).await
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
            .write("prove_store_id", async move |tx| {
                prove_store_id(tx, app, &id, proof, &origin).await
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
        self.read("app_secret", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            let row = tx
                .query_opt(
                    "select sealed from app_secrets where app_id = $1 and name = $2",
                    &[&uuid(app.as_bytes()), &secret.as_str()],
                )
                .await?;
            let sealed = row.map(|row| row.try_get(0)).transpose()?;
            Ok(sealed.map(SealedSecret::from_bytes))
        })
        .await
    }
}
