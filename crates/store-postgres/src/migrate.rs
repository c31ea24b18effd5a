//! Schema migrations.

use crate::pool::{Pool, PostgresOpenError};
use deadpool_postgres::{Object, Transaction};
use std::time::Duration;
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use tributary_store::migration::{
    AppliedMigration, Migration, allows_older_nodes, pending_migrations,
};

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
    Migration {
        number: 29,
        name: "request_quotas",
        sql: include_str!("../migrations/0029_request_quotas.sql"),
    },
    Migration {
        number: 30,
        name: "due_work",
        sql: include_str!("../migrations/0030_due_work.sql"),
    },
    Migration {
        number: 31,
        name: "queue_parts",
        sql: include_str!("../migrations/0031_queue_parts.sql"),
    },
    Migration {
        number: 32,
        name: "resumed_queues",
        sql: include_str!("../migrations/0032_resumed_queues.sql"),
    },
    Migration {
        number: 33,
        name: "pivots",
        sql: include_str!("../migrations/0033_pivots.sql"),
    },
    Migration {
        number: 34,
        name: "link_labels",
        sql: include_str!("../migrations/0034_link_labels.sql"),
    },
    Migration {
        number: 35,
        name: "views",
        sql: include_str!("../migrations/0035_views.sql"),
    },
    Migration {
        number: 36,
        name: "cost_sources",
        sql: include_str!("../migrations/0036_cost_sources.sql"),
    },
    Migration {
        number: 37,
        name: "notices",
        sql: include_str!("../migrations/0037_notices.sql"),
    },
    Migration {
        number: 38,
        name: "consent_and_erasure",
        sql: include_str!("../migrations/0038_consent_and_erasure.sql"),
    },
    Migration {
        number: 39,
        name: "password_guesses",
        sql: include_str!("../migrations/0039_password_guesses.sql"),
    },
    Migration {
        number: 40,
        name: "session_clients",
        sql: include_str!("../migrations/0040_session_clients.sql"),
    },
    Migration {
        number: 41,
        name: "payers",
        sql: include_str!("../migrations/0041_payers.sql"),
    },
    Migration {
        number: 42,
        name: "key_owners",
        sql: include_str!("../migrations/0042_key_owners.sql"),
    },
    Migration {
        number: 43,
        name: "session_proofs",
        sql: include_str!("../migrations/0043_session_proofs.sql"),
    },
    Migration {
        number: 44,
        name: "second_factors",
        sql: include_str!("../migrations/0044_second_factors.sql"),
    },
    Migration {
        number: 45,
        name: "password_resets",
        sql: include_str!("../migrations/0045_password_resets.sql"),
    },
    Migration {
        number: 46,
        name: "audit_chain",
        sql: include_str!("../migrations/0046_audit_chain.sql"),
    },
    Migration {
        number: 47,
        name: "audit_log_by_sequence",
        sql: include_str!("../migrations/0047_audit_log_by_sequence.sql"),
    },
    Migration {
        number: 48,
        name: "audit_streams",
        sql: include_str!("../migrations/0048_audit_streams.sql"),
    },
    Migration {
        number: 49,
        name: "single_sign_on",
        sql: include_str!("../migrations/0049_single_sign_on.sql"),
    },
    Migration {
        number: 50,
        name: "secret_key_rotation",
        sql: include_str!("../migrations/0050_secret_key_rotation.sql"),
    },
    Migration {
        number: 51,
        name: "passkeys",
        sql: include_str!("../migrations/0051_passkeys.sql"),
    },
    Migration {
        number: 52,
        name: "sdk_key_rotation",
        sql: include_str!("../migrations/0052_sdk_key_rotation.sql"),
    },
    Migration {
        number: 53,
        name: "previous_alert_secrets",
        sql: include_str!("../migrations/0053_previous_alert_secrets.sql"),
    },
    Migration {
        number: 54,
        name: "creators",
        sql: include_str!("../migrations/0054_creators.sql"),
    },
];

/// Advisory lock that serialises nodes starting at the same time: "tributar" in ASCII.
pub(crate) const LOCK: i64 = 0x7472_6962_7574_6172;
/// Pause before asking again for the advisory lock. Waiting for it in the database would block an
/// index that is built concurrently, which waits for every running statement.
const LOCK_PAUSE: Duration = Duration::from_millis(200);
/// How often a migration is tried while running nodes hold locks on its tables, and the pause in
/// between: for some minutes. While it waits for a lock, all traffic on the table waits behind it.
const TRIES_MAX: u32 = 100;
const TRY_PAUSE: Duration = Duration::from_secs(2);

/// Result of a step.
enum MigrationStep {
    /// No migration is pending.
    UpToDate,
    /// Some migrations were applied, and more may be pending.
    Applied,
    /// Another node is migrating.
    LockedElsewhere,
}

/// Applies the pending migrations, on one node at a time.
///
/// Other nodes wait as long as this takes and then find nothing to do. If nodes of the previous
/// version may be running, each migration is a transaction that waits for locks only briefly and is
/// tried again, so that these nodes are never blocked for long. Citus refuses several changes to
/// related tables in one transaction, unless it makes them one after the other; without Citus the
/// setting has no effect.
pub(crate) async fn migrate(pool: &Pool, connection: &mut Object) -> Result<(), PostgresOpenError> {
    migrate_to(pool, connection, MIGRATIONS).await
}

/// Same as [`migrate`], with other migrations.
pub(crate) async fn migrate_to(
    pool: &Pool,
    connection: &mut Object,
    migrations: &[Migration],
) -> Result<(), PostgresOpenError> {
    let mut tries = 0;
    loop {
        match step(pool, connection, migrations).await {
            Ok(MigrationStep::UpToDate) => return Ok(()),
            Ok(MigrationStep::Applied) => tries = 0,
            Ok(MigrationStep::LockedElsewhere) => tokio::time::sleep(LOCK_PAUSE).await,
            Err(PostgresOpenError::Locked(reason)) if tries < TRIES_MAX => {
                tries += 1;
                tracing::info!(reason, "a table is locked; trying the migration again");
                tokio::time::sleep(TRY_PAUSE).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Applies the next migration, or all of them if no older node may be running. Rolls back if it
/// fails.
async fn step(
    pool: &Pool,
    connection: &mut Object,
    migrations: &[Migration],
) -> Result<MigrationStep, PostgresOpenError> {
    let tx = connection.transaction().await?;
    let done = apply_in(&tx, pool, migrations).await?;
    match done {
        MigrationStep::Applied => tx.commit().await?,
        MigrationStep::UpToDate | MigrationStep::LockedElsewhere => tx.rollback().await?,
    }
    Ok(done)
}

async fn apply_in(
    tx: &Transaction<'_>,
    pool: &Pool,
    migrations: &[Migration],
) -> Result<MigrationStep, PostgresOpenError> {
    tx.batch_execute(
        "set local synchronous_commit = on;
         set local idle_in_transaction_session_timeout = '1min';
         set local citus.multi_shard_modify_mode = 'sequential';
         set local statement_timeout = 0;
         set local lock_timeout = '10s'",
    )
    .await?;
    // Most starts find nothing to do and need no lock.
    if pending_migrations(migrations, &applied(tx).await?)?.is_empty() {
        return Ok(MigrationStep::UpToDate);
    }
    let lock = format!("select pg_try_advisory_xact_lock({LOCK})");
    if !tx
        .query_typed_one(&lock, &[])
        .await?
        .try_get::<_, bool>(0)?
    {
        return Ok(MigrationStep::LockedElsewhere);
    }
    let applied = applied(tx).await?;
    let pending = pending_migrations(migrations, &applied)?;
    let Some(next) = pending.first() else {
        return Ok(MigrationStep::UpToDate);
    };
    tx.batch_execute(CREATE_TABLE).await?;
    if allows_older_nodes(&pending, &applied) {
        apply_beside_older_nodes(tx, pool, next).await?;
    } else {
        for migration in pending {
            announce(migration);
            tx.batch_execute(&migration.sql_in_transaction()).await?;
            record(tx, migration).await?;
        }
    }
    Ok(MigrationStep::Applied)
}

/// Applies a migration without blocking running nodes: gives up a lock after a second, which is less
/// than their statements wait for one.
async fn apply_beside_older_nodes(
    tx: &Transaction<'_>,
    pool: &Pool,
    migration: &Migration,
) -> Result<(), PostgresOpenError> {
    announce(migration);
    if migration.is_outside_transaction() {
        // This transaction only holds the advisory lock meanwhile.
        let forever = "set local idle_in_transaction_session_timeout = 0";
        tx.batch_execute(forever).await?;
        // Not returned to the pool, because it keeps these settings.
        let other = Object::take(pool.first_connection().await?);
        other.batch_execute("set statement_timeout = 0").await?;
        for statement in migration.statements() {
            let limit = statement_lock_timeout(statement);
            let limit = format!("set lock_timeout = '{limit}'");
            other.batch_execute(&limit).await?;
            other.batch_execute(statement).await?;
        }
    } else {
        tx.batch_execute("set local lock_timeout = '1s'").await?;
        tx.batch_execute(migration.sql).await?;
    }
    record(tx, migration).await
}

/// Returns how long a statement outside a transaction waits for a lock. A build waits for the
/// transactions that were running when it began. Other statements may wait for the build of a program
/// that was killed, which may wait for the end of our transaction: the server does not see that as a
/// deadlock, because our transaction is idle.
fn statement_lock_timeout(statement: &str) -> &'static str {
    let builds = ["create index", "create unique index"];
    let is_build = |line: &str| builds.iter().any(|begin| line.starts_with(begin));
    // Comments precede the first statement.
    if statement.lines().any(is_build) {
        "0"
    } else {
        "5s"
    }
}

fn announce(migration: &Migration) {
    tracing::info!(migration.number, migration.name, "applying migration");
}

async fn record(tx: &Transaction<'_>, migration: &Migration) -> Result<(), PostgresOpenError> {
    tx.execute_typed(
        "insert into schema_migrations (number, name, checksum, compatible_from)
         values ($1, $2, $3, $4)",
        &[
            (&migration.number, Type::INT8),
            (&migration.name, Type::TEXT),
            (&migration.checksum(), Type::TEXT),
            (&migration.compatible_from(), Type::INT8),
        ],
    )
    .await?;
    Ok(())
}

/// Creates the list of migrations. Versions up to migration 28 did not record the compatibility.
const CREATE_TABLE: &str = "
    create table if not exists schema_migrations (
        number bigint not null,
        name text collate \"C\" not null,
        checksum text collate \"C\" not null,
        compatible_from bigint,
        constraint schema_migrations_pkey primary key (number)
    );
    alter table schema_migrations add column if not exists compatible_from bigint";

/// Reads the applied migrations. Writes nothing, because a standby is readable but not writable: the
/// list and its last column may be missing.
async fn applied(tx: &Transaction<'_>) -> Result<Vec<AppliedMigration>, PostgresOpenError> {
    let exists = tx
        .query_typed_one("select to_regclass('schema_migrations') is not null", &[])
        .await?;
    if !exists.try_get::<_, bool>(0)? {
        return Ok(Vec::new());
    }
    let rows = tx
        .query_typed(
            "select number, checksum, (to_jsonb(step) ->> 'compatible_from')::bigint
             from schema_migrations as step order by number",
            &[],
        )
        .await?;
    let step = |row: &Row| {
        Ok(AppliedMigration {
            number: row.try_get(0)?,
            checksum: row.try_get(1)?,
            compatible_from: row.try_get(2)?,
        })
    };
    rows.iter().map(step).collect()
}
