//! Apps.

use crate::rows::{
    APP_COLUMNS, app_secrets, find_app, insert_audit, page_start, read_row, require_app,
    update_app_row,
};
use crate::{Failure, SqliteStore, postbacks};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
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
use tributary_store::records::{AppRow, audit_row};
use tributary_store::{APP_NAMES_MAX, AppName, Apps, CLAIMED_AT_ONCE_MAX, StoreResult};

fn insert_app(connection: &Connection, app: &App) -> Result<(), Failure> {
    let row = AppRow::write(app);
    connection.execute(
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
    let keys = [
        (&app.sdk.live_key, Environment::Live),
        (&app.sdk.test_key, Environment::Test),
    ];
    for (key, environment) in keys {
        connection.execute(
            "insert into sdk_keys (sdk_key, app_id, environment) values (?1, ?2, ?3)",
            params![key, app.id.as_bytes(), environment.as_str()],
        )?;
    }
    Ok(())
}

/// Takes the names that are unique on the instance, and gives up those the app no longer has. With its App Store id an
/// app gets the postbacks that waited for it.
fn claim_names(connection: &Connection, app: &App) -> Result<(), Failure> {
    let id = app.id.as_bytes();
    let store_id = app.ios.app_store_id.as_deref();
    connection.execute(
        "delete from app_store_ids where app_id = ?1 and app_store_id is not ?2",
        params![id, store_id],
    )?;
    if let Some(store_id) = store_id {
        let claimed = connection.execute(
            "insert into app_store_ids (app_store_id, app_id) values (?1, ?2)
             on conflict (app_store_id) do update set app_id = app_id where app_id = ?2",
            params![store_id, id],
        )?;
        if claimed == 0 {
            return Err(Refusal::StoreIdTaken.into());
        }
        postbacks::claim(connection, app.id, store_id, CLAIMED_AT_ONCE_MAX)?;
    }
    let domain = app
        .link_domain
        .as_ref()
        .map(tributary_domain::vocabulary::web_url::HostName::as_str);
    connection.execute(
        "delete from link_domains where app_id = ?1 and link_domain is not ?2",
        params![id, domain],
    )?;
    if let Some(domain) = domain {
        let claimed = connection.execute(
            "insert into link_domains (link_domain, app_id) values (?1, ?2)
             on conflict (link_domain) do update set app_id = app_id where app_id = ?2",
            params![domain, id],
        )?;
        if claimed == 0 {
            return Err(Refusal::DomainTaken.into());
        }
    }
    Ok(())
}

pub(crate) fn set_secret(
    connection: &Connection,
    app: AppId,
    secret: AppSecret,
    change: &Change<Sealed>,
    origin: &Origin,
) -> Result<(), Failure> {
    match change {
        Change::Keep => {}
        Change::Reset => {
            connection.execute(
                "delete from app_secrets where app_id = ?1 and name = ?2",
                params![app.as_bytes(), secret.as_str()],
            )?;
        }
        Change::Set(sealed) => {
            connection.execute(
                "insert into app_secrets (app_id, name, sealed, set_at) values (?1, ?2, ?3, ?4)
                 on conflict (app_id, name)
                 do update set sealed = excluded.sealed, set_at = excluded.set_at",
                params![
                    app.as_bytes(),
                    secret.as_str(),
                    sealed.as_bytes(),
                    origin.at.as_millis()
                ],
            )?;
        }
    }
    Ok(())
}

/// A secret that is set by hand, or taken away, leaves none beside it that would still open the door.
fn forget_before(
    connection: &Connection,
    app: AppId,
    secret: AppSecret,
    change: &Change<Sealed>,
) -> Result<(), Failure> {
    let AppSecret::Billing(provider) = secret else {
        return Ok(());
    };
    if !matches!(change, Change::Keep) {
        let before = AppSecret::BillingBefore(provider);
        connection.execute(
            "delete from app_secrets where app_id = ?1 and name = ?2",
            params![app.as_bytes(), before.as_str()],
        )?;
    }
    Ok(())
}

/// Keeps the secret that is replaced beside the new one.
fn keep_before(
    connection: &Connection,
    app: AppId,
    secret: AppSecret,
    at: Timestamp,
) -> Result<(), Failure> {
    let AppSecret::Billing(provider) = secret else {
        return Ok(());
    };
    connection
        .prepare_cached(
            "insert into app_secrets (app_id, name, sealed, set_at)
             select app_id, ?3, sealed, ?4 from app_secrets where app_id = ?1 and name = ?2
             on conflict do update set sealed = excluded.sealed, set_at = excluded.set_at",
        )?
        .execute(params![
            app.as_bytes(),
            secret.as_str(),
            AppSecret::BillingBefore(provider).as_str(),
            at.as_millis()
        ])?;
    Ok(())
}

#[async_trait]
impl Apps for SqliteStore {
    async fn create_app(
        &self,
        caller: &Authorized<AppsWrite>,
        app: App,
        secrets: Vec<(AppSecret, Sealed)>,
        origin: Origin,
    ) -> StoreResult<App> {
        let organization = caller.organization();
        self.write("create_app", move |connection| {
            insert_app(connection, &app)?;
            claim_names(connection, &app)?;
            for (secret, sealed) in secrets {
                set_secret(connection, app.id, secret, &Change::Set(sealed), &origin)?;
            }
            let action = Action::AppCreated;
            let row = audit_row(
                organization,
                &origin,
                action,
                Some(app.id),
                app.id,
                &app.described(),
            );
            insert_audit(connection, &row)?;
            Ok(app)
        })
        .await
    }

    async fn app(&self, caller: &Authorized<AppsRead>, app: AppId) -> StoreResult<App> {
        let organization = caller.organization();
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
        let organization = caller.organization();
        self.read("app_timezone", move |connection| {
            find_app(connection, organization, app).map(|app| app.timezone)
        })
        .await
    }

    async fn app_names(&self, caller: &Authorized<AnalyticsRead>) -> StoreResult<Vec<AppName>> {
        let organization = caller.organization();
        self.read("app_names", move |connection| {
            let sql = format!(
                "select {APP_COLUMNS} from apps where organization_id = ?1
                 order by app_id desc limit ?2"
            );
            let rows: Vec<AppRow> = connection
                .prepare_cached(&sql)?
                .query_map(
                    params![organization.as_bytes(), APP_NAMES_MAX],
                    read_row::<AppRow>,
                )?
                .collect::<Result<_, _>>()?;
            Ok(rows
                .into_iter()
                .map(AppRow::named)
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
        let organization = caller.organization();
        self.read("apps", move |connection| {
            let sql = format!(
                "select {APP_COLUMNS} from apps where organization_id = ?1 and app_id < ?2 and archived <= ?4
                 order by app_id desc limit ?3"
            );
            let rows: Vec<AppRow> = connection
                .prepare_cached(&sql)?
                .query_map(
                    params![
                        organization.as_bytes(),
                        page_start(page.before),
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
        origin: Origin,
    ) -> StoreResult<App> {
        let organization = caller.organization();
        self.change("update_app", move |connection| {
            let current = find_app(connection, organization, app)?;
            let (secrets, keeps_replaced) = (change.secrets.clone(), change.keeps_replaced);
            let changed = current.changed(change, &precondition, origin.at)?;
            if changed.changes.is_empty() {
                return Ok(changed.after);
            }
            update_app_row(connection, &changed.after)?;
            claim_names(connection, &changed.after)?;
            for (secret, change) in &secrets {
                if keeps_replaced {
                    keep_before(connection, app, *secret, origin.at)?;
                } else {
                    forget_before(connection, app, *secret, change)?;
                }
                set_secret(connection, app, *secret, change, &origin)?;
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
            insert_audit(connection, &row)?;
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
        self.read("app_secret", move |connection| {
            require_app(connection, organization, app)?;
            let sealed: Option<Vec<u8>> = connection
                .prepare_cached("select sealed from app_secrets where app_id = ?1 and name = ?2")?
                .query_row(params![app.as_bytes(), secret.as_str()], |row| row.get(0))
                .optional()?;
            Ok(sealed.map(Sealed::from_bytes))
        })
        .await
    }
}
