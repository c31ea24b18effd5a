//! Schema migrations.

use crate::pool::PostgresOpenError;
use deadpool_postgres::{Object, Transaction};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use tributary_store::migration::{AppliedMigration, Migration, pending_migrations};

/// All migrations in order. Append only: never edit a released migration.
pub(crate) const MIGRATIONS: &[Migration] = &[
    Migration {
        number: 1,
        name: "foundation",
        sql: include_str!("../migrations/0001_foundation.sql"),
    },
    Migration {
        number: 2,
        name: "attribution",
        sql: include_str!("../migrations/0002_attribution.sql"),
    },
    Migration {
        number: 3,
        name: "ledger",
        sql: include_str!("../migrations/0003_ledger.sql"),
    },
    Migration {
        number: 4,
        name: "forwarding",
        sql: include_str!("../migrations/0004_forwarding.sql"),
    },
    Migration {
        number: 5,
        name: "postbacks",
        sql: include_str!("../migrations/0005_postbacks.sql"),
    },
    Migration {
        number: 6,
        name: "billing",
        sql: include_str!("../migrations/0006_billing.sql"),
    },
    Migration {
        number: 7,
        name: "reports",
        sql: include_str!("../migrations/0007_reports.sql"),
    },
    Migration {
        number: 8,
        name: "dashboard",
        sql: include_str!("../migrations/0008_dashboard.sql"),
    },
    Migration {
        number: 9,
        name: "hot_paths",
        sql: include_str!("../migrations/0009_hot_paths.sql"),
    },
    Migration {
        number: 10,
        name: "one_row_an_event",
        sql: include_str!("../migrations/0010_one_row_an_event.sql"),
    },
    Migration {
        number: 11,
        name: "erasure",
        sql: include_str!("../migrations/0011_erasure.sql"),
    },
    Migration {
        number: 12,
        name: "increments",
        sql: include_str!("../migrations/0012_increments.sql"),
    },
    Migration {
        number: 13,
        name: "campaigns",
        sql: include_str!("../migrations/0013_campaigns.sql"),
    },
    Migration {
        number: 14,
        name: "attribution_retention",
        sql: include_str!("../migrations/0014_attribution_retention.sql"),
    },
    Migration {
        number: 15,
        name: "click_environment",
        sql: include_str!("../migrations/0015_click_environment.sql"),
    },
    Migration {
        number: 16,
        name: "billing_keys",
        sql: include_str!("../migrations/0016_billing_keys.sql"),
    },
    Migration {
        number: 17,
        name: "duplicates",
        sql: include_str!("../migrations/0017_duplicates.sql"),
    },
    Migration {
        number: 18,
        name: "transactions",
        sql: include_str!("../migrations/0018_transactions.sql"),
    },
    Migration {
        number: 19,
        name: "device_spelling",
        sql: include_str!("../migrations/0019_device_spelling.sql"),
    },
    Migration {
        number: 20,
        name: "identity_claims",
        sql: include_str!("../migrations/0020_identity_claims.sql"),
    },
    Migration {
        number: 21,
        name: "audit_and_schemes",
        sql: include_str!("../migrations/0021_audit_and_schemes.sql"),
    },
    Migration {
        number: 22,
        name: "known_values",
        sql: include_str!("../migrations/0022_known_values.sql"),
    },
    Migration {
        number: 23,
        name: "holds",
        sql: include_str!("../migrations/0023_holds.sql"),
    },
    Migration {
        number: 24,
        name: "known_skan_events",
        sql: include_str!("../migrations/0024_known_skan_events.sql"),
    },
    Migration {
        number: 25,
        name: "traffic",
        sql: include_str!("../migrations/0025_traffic.sql"),
    },
    Migration {
        number: 26,
        name: "accounts_per_organization",
        sql: include_str!("../migrations/0026_accounts_per_organization.sql"),
    },
    Migration {
        number: 27,
        name: "store_id_claims",
        sql: include_str!("../migrations/0027_store_id_claims.sql"),
    },
    Migration {
        number: 28,
        name: "unused_indexes",
        sql: include_str!("../migrations/0028_unused_indexes.sql"),
    },
];

/// Advisory lock that serialises nodes starting at the same time: "tributar" in ASCII.
const LOCK: i64 = 0x7472_6962_7574_6172;

/// Applies the pending migrations in one transaction, on one node.
///
/// Other nodes wait as long as this takes and then find nothing to do. A table lock is awaited only
/// for a short time, because all other traffic queues behind the waiting migration.
pub(crate) async fn migrate(connection: &mut Object) -> Result<(), PostgresOpenError> {
    let tx = connection.transaction().await?;
    match apply(&tx).await {
        Ok(()) => tx.commit().await?,
        Err(error) => {
            tx.rollback().await?;
            return Err(error);
        }
    }
    Ok(())
}

async fn apply(tx: &Transaction<'_>) -> Result<(), PostgresOpenError> {
    tx.batch_execute(&format!(
        "set local synchronous_commit = on;
         set local idle_in_transaction_session_timeout = '1min';
         set local statement_timeout = 0;
         set local lock_timeout = 0;
         select pg_advisory_xact_lock({LOCK});
         set local lock_timeout = '10s'"
    ))
    .await?;
    for migration in pending_migrations(MIGRATIONS, &applied(tx).await?)? {
        tracing::info!(migration.number, migration.name, "applying migration");
        tx.batch_execute(migration.sql).await?;
        tx.execute_typed(
            "insert into schema_migrations (number, name, checksum) values ($1, $2, $3)",
            &[
                (&migration.number, Type::INT8),
                (&migration.name, Type::TEXT),
                (&migration.checksum(), Type::TEXT),
            ],
        )
        .await?;
    }
    Ok(())
}

/// Reads the applied migrations.
async fn applied(tx: &Transaction<'_>) -> Result<Vec<AppliedMigration>, PostgresOpenError> {
    // The table is looked up before creating it, because a standby is readable but not writable.
    let exists = tx
        .query_typed_one("select to_regclass('schema_migrations') is not null", &[])
        .await?;
    if !exists.try_get::<_, bool>(0)? {
        tx.batch_execute(
            "create table schema_migrations (
                 number bigint not null,
                 name text collate \"C\" not null,
                 checksum text collate \"C\" not null,
                 constraint schema_migrations_pkey primary key (number)
             )",
        )
        .await?;
    }
    let rows = tx
        .query_typed(
            "select number, checksum from schema_migrations order by number",
            &[],
        )
        .await?;
    let step = |row: &Row| {
        Ok(AppliedMigration {
            number: row.try_get(0)?,
            checksum: row.try_get(1)?,
        })
    };
    rows.iter().map(step).collect()
}
