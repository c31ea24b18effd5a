//! Apps.

use crate::rows::{
    APP_COLUMNS, Conditions, Purpose, find_app, insert_audit, read_apps, read_row, require_app,
    update_app_row, uuid,
};
use crate::tx::Tx;
use crate::{Failure, PostgresStore, postbacks};
use async_trait::async_trait;
use std::collections::BTreeMap;
use tributary_domain::access::{AnalyticsRead, AppsRead, AppsWrite, Authorized, Environment};
use tributary_domain::app::{App, AppChange, AppSecret};
use tributary_domain::audit::{Action, Origin};
use tributary_domain::keyring::seal::Sealed;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::timezone::Timezone;
use tributary_domain::vocabulary::web_url::HostName;
use tributary_store::records::{AppRow, audit_row};
use tributary_store::{APP_NAMES_MAX, AppName, Apps, CLAIMED_AT_ONCE_MAX, StoreResult};

async fn insert_app(tx: &Tx, app: &App) -> Result<(), Failure> {
    let row = AppRow::write(app);
    tx.execute(
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
    let keys = vec![app.sdk.live_key.as_str(), app.sdk.test_key.as_str()];
    let environments = vec![Environment::Live.as_str(), Environment::Test.as_str()];
    tx.execute(
        "insert into sdk_keys (sdk_key, app_id, environment)
         select sdk_key, $1, environment from unnest($2, $3) as new (sdk_key, environment)",
        &[&uuid(app.id.as_bytes()), &keys, &environments],
    )
    .await?;
    Ok(())
}

/// A table of names that are unique on the instance.
struct Names {
    table: &'static str,
    column: &'static str,
    taken: Refusal,
}

const APP_STORE_IDS: Names = Names {
    table: "app_store_ids",
    column: "app_store_id",
    taken: Refusal::StoreIdTaken,
};

const LINK_DOMAINS: Names = Names {
    table: "link_domains",
    column: "link_domain",
    taken: Refusal::DomainTaken,
};

impl Names {
    /// Takes a name, and is told whether somebody else has it. Whoever is just taking or giving it up is
    /// waited for.
    async fn claim(self, tx: &Tx, app: AppId, name: &str) -> Result<(), Failure> {
        let Self { table, column, .. } = self;
        let app = uuid(app.as_bytes());
        let sql = format!(
            "insert into {table} ({column}, app_id) values ($1, $2) on conflict ({column}) do nothing"
        );
        if tx.execute(&sql, &[&name, &app]).await? == 1 {
            return Ok(());
        }
        let sql = format!("select 1 from {table} where {column} = $1 and app_id = $2");
        match tx.query_opt(&sql, &[&name, &app]).await? {
            Some(_) => Ok(()),
            None => Err(self.taken.into()),
        }
    }

    /// Gives up what the app has besides this.
    async fn release_others(self, tx: &Tx, app: AppId, kept: Option<&str>) -> Result<(), Failure> {
        let Self { table, column, .. } = self;
        let sql = format!("delete from {table} where app_id = $1 and {column} is distinct from $2");
        tx.execute(&sql, &[&uuid(app.as_bytes()), &kept]).await?;
        Ok(())
    }
}

/// Takes the names that are unique on the instance, and gives up those the app no longer has. Taken first
/// and in this order: two apps that swap names are both refused rather than waiting for each other. With its App Store
/// id an app gets the postbacks that waited for it.
async fn claim_names(tx: &Tx, app: &App) -> Result<(), Failure> {
    let store_id = app.ios.app_store_id.as_deref();
    let domain = app.link_domain.as_ref().map(HostName::as_str);
    if let Some(store_id) = store_id {
        APP_STORE_IDS.claim(tx, app.id, store_id).await?;
    }
    if let Some(domain) = domain {
        LINK_DOMAINS.claim(tx, app.id, domain).await?;
    }
    APP_STORE_IDS.release_others(tx, app.id, store_id).await?;
    LINK_DOMAINS.release_others(tx, app.id, domain).await?;
    if let Some(store_id) = store_id {
        postbacks::claim(tx, app.id, store_id, CLAIMED_AT_ONCE_MAX).await?;
    }
    Ok(())
}

async fn insert_secrets(
    tx: &Tx,
    app: AppId,
    secrets: &[(AppSecret, Sealed)],
    origin: &Origin,
) -> Result<(), Failure> {
    // One statement cannot write a row twice; of one secret that is given twice the last one counts.
    let (names, sealed): (Vec<&str>, Vec<&[u8]>) = secrets
        .iter()
        .map(|(name, sealed)| (name.as_str(), sealed.as_bytes()))
        .collect::<BTreeMap<_, _>>()
        .into_iter()
        .unzip();
    tx.execute(
        "insert into app_secrets (app_id, name, sealed, set_at)
         select $1, name, sealed, $2 from unnest($3, $4) as new (name, sealed)",
        &[
            &uuid(app.as_bytes()),
            &origin.at.as_millis(),
            &names,
            &sealed,
        ],
    )
    .await?;
    Ok(())
}

pub(crate) async fn set_secret(
    tx: &Tx,
    app: AppId,
    secret: AppSecret,
    change: &Change<Sealed>,
    origin: &Origin,
) -> Result<(), Failure> {
    let app = uuid(app.as_bytes());
    match change {
        Change::Keep => {}
        Change::Reset => {
            tx.execute(
                "delete from app_secrets where app_id = $1 and name = $2",
                &[&app, &secret.as_str()],
            )
            .await?;
        }
        Change::Set(sealed) => {
            tx.execute(
                "insert into app_secrets (app_id, name, sealed, set_at) values ($1, $2, $3, $4)
                 on conflict (app_id, name)
                 do update set sealed = excluded.sealed, set_at = excluded.set_at",
                &[
                    &app,
                    &secret.as_str(),
                    &sealed.as_bytes(),
                    &origin.at.as_millis(),
                ],
            )
            .await?;
        }
    }
    Ok(())
}

/// A secret that is set by hand, or taken away, leaves none beside it that would still open the door.
async fn forget_before(
    tx: &Tx,
    app: AppId,
    secret: AppSecret,
    change: &Change<Sealed>,
) -> Result<(), Failure> {
    let AppSecret::Billing(provider) = secret else {
        return Ok(());
    };
    if !matches!(change, Change::Keep) {
        let before = AppSecret::BillingBefore(provider);
        tx.execute(
            "delete from app_secrets where app_id = $1 and name = $2",
            &[&uuid(app.as_bytes()), &before.as_str()],
        )
        .await?;
    }
    Ok(())
}

/// Keeps the secret that is replaced beside the new one.
async fn keep_before(tx: &Tx, app: AppId, secret: AppSecret, at: Timestamp) -> Result<(), Failure> {
    let AppSecret::Billing(provider) = secret else {
        return Ok(());
    };
    tx.execute(
        "insert into app_secrets (app_id, name, sealed, set_at)
         select app_id, $3, sealed, $4 from app_secrets where app_id = $1 and name = $2
         on conflict (app_id, name)
         do update set sealed = excluded.sealed, set_at = excluded.set_at",
        &[
            &uuid(app.as_bytes()),
            &secret.as_str(),
            &AppSecret::BillingBefore(provider).as_str(),
            &at.as_millis(),
        ],
    )
    .await?;
    Ok(())
}

#[async_trait]
impl Apps for PostgresStore {
    async fn create_app(
        &self,
        caller: &Authorized<AppsWrite>,
        app: App,
        secrets: Vec<(AppSecret, Sealed)>,
        origin: Origin,
    ) -> StoreResult<App> {
        let organization = caller.organization();
        self.write("create_app", async move |tx| {
            insert_app(tx, &app).await?;
            claim_names(tx, &app).await?;
            insert_secrets(tx, app.id, &secrets, &origin).await?;
            let action = Action::AppCreated;
            let row = audit_row(
                organization,
                &origin,
                action,
                Some(app.id),
                app.id,
                &app.described(),
            );
            insert_audit(tx, &row).await?;
            Ok(app.clone())
        })
        .await
    }

    async fn app(&self, caller: &Authorized<AppsRead>, app: AppId) -> StoreResult<App> {
        let organization = caller.organization();
        self.read("app", async move |tx| {
            find_app(tx, organization, app, Purpose::Reading).await
        })
        .await
    }

    async fn app_timezone(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
    ) -> StoreResult<Timezone> {
        let organization = caller.organization();
        self.read("app_timezone", async move |tx| {
            let app = find_app(tx, organization, app, Purpose::Reading).await?;
            Ok(app.timezone)
        })
        .await
    }

    async fn app_names(&self, caller: &Authorized<AnalyticsRead>) -> StoreResult<Vec<AppName>> {
        let organization = uuid(caller.organization().as_bytes());
        self.read("app_names", async move |tx| {
            let sql = format!(
                "select {APP_COLUMNS} from apps where organization_id = $1
                 order by app_id desc limit $2"
            );
            let rows = tx
                .query(&sql, &[&organization, &i64::from(APP_NAMES_MAX)])
                .await?;
            rows.iter()
                .map(|row| Ok(read_row::<AppRow>(row)?.named()?))
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
        let organization = uuid(caller.organization().as_bytes());
        let before = page.before.as_ref().map(uuid);
        self.read("apps", async move |tx| {
            let rows = page.limit.rows();
            let (conditions, params) = Conditions::new("organization_id", &organization)
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
        origin: Origin,
    ) -> StoreResult<App> {
        let organization = caller.organization();
        self.change("update_app", async move |tx| {
            let current = find_app(tx, organization, app, Purpose::Changing).await?;
            let changed = current.changed(change.clone(), &precondition, origin.at)?;
            if changed.changes.is_empty() {
                return Ok(changed.after);
            }
            update_app_row(tx, &changed.after).await?;
            claim_names(tx, &changed.after).await?;
            for (secret, set) in &change.secrets {
                if change.keeps_replaced {
                    keep_before(tx, app, *secret, origin.at).await?;
                } else {
                    forget_before(tx, app, *secret, set).await?;
                }
                set_secret(tx, app, *secret, set, &origin).await?;
            }
            let action = Action::AppUpdated;
            let row = audit_row(
                organization,
                &origin,
                action,
                Some(app),
                app,
                &changed.changes,
            );
            insert_audit(tx, &row).await?;
            Ok(changed.after)
        })
        .await
    }

    async fn app_secret(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        secret: AppSecret,
    ) -> StoreResult<Option<Sealed>> {
        let organization = caller.organization();
        self.read("app_secret", async move |tx| {
            require_app(tx, organization, app, Purpose::Reading).await?;
            let row = tx
                .query_opt(
                    "select sealed from app_secrets where app_id = $1 and name = $2",
                    &[&uuid(app.as_bytes()), &secret.as_str()],
                )
                .await?;
            let sealed = row.map(|row| row.try_get(0)).transpose()?;
            Ok(sealed.map(Sealed::from_bytes))
        })
        .await
    }
}
