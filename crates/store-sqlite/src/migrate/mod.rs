//! Schema migrations.

use crate::connection::SqliteOpenError;
use rusqlite::{Connection, TransactionBehavior};
use tributary_store::migration::{
    AppliedMigration, Migration, MigrationRefusal, pending_migrations,
};

/// All migrations in order. Append only: never edit a released migration.
pub(crate) const MIGRATIONS: &[Migration] = &[
    Migration {
        number: 1,
        name: "foundation",
        sql: include_str!("../../migrations/0001_foundation.sql"),
    },
    Migration {
        number: 2,
        name: "attribution",
        sql: include_str!("../../migrations/0002_attribution.sql"),
    },
    Migration {
        number: 3,
        name: "ledger",
        sql: include_str!("../../migrations/0003_ledger.sql"),
    },
    Migration {
        number: 4,
        name: "forwarding",
        sql: include_str!("../../migrations/0004_forwarding.sql"),
    },
    Migration {
        number: 5,
        name: "postbacks",
        sql: include_str!("../../migrations/0005_postbacks.sql"),
    },
    Migration {
        number: 6,
        name: "billing",
        sql: include_str!("../../migrations/0006_billing.sql"),
    },
    Migration {
        number: 7,
        name: "reports",
        sql: include_str!("../../migrations/0007_reports.sql"),
    },
    Migration {
        number: 8,
        name: "dashboard",
        sql: include_str!("../../migrations/0008_dashboard.sql"),
    },
    Migration {
        number: 9,
        name: "hot_paths",
        sql: include_str!("../../migrations/0009_hot_paths.sql"),
    },
    Migration {
        number: 10,
        name: "one_row_an_event",
        sql: include_str!("../../migrations/0010_one_row_an_event.sql"),
    },
    Migration {
        number: 11,
        name: "erasure",
        sql: include_str!("../../migrations/0011_erasure.sql"),
    },
    Migration {
        number: 12,
        name: "increments",
        sql: include_str!("../../migrations/0012_increments.sql"),
    },
    Migration {
        number: 13,
        name: "campaigns",
        sql: include_str!("../../migrations/0013_campaigns.sql"),
    },
    Migration {
        number: 14,
        name: "attribution_retention",
        sql: include_str!("../../migrations/0014_attribution_retention.sql"),
    },
    Migration {
        number: 15,
        name: "click_environment",
        sql: include_str!("../../migrations/0015_click_environment.sql"),
    },
    Migration {
        number: 16,
        name: "billing_keys",
        sql: include_str!("../../migrations/0016_billing_keys.sql"),
    },
    Migration {
        number: 17,
        name: "duplicates",
        sql: include_str!("../../migrations/0017_duplicates.sql"),
    },
    Migration {
        number: 18,
        name: "transactions",
        sql: include_str!("../../migrations/0018_transactions.sql"),
    },
    Migration {
        number: 19,
        name: "device_spelling",
        sql: include_str!("../../migrations/0019_device_spelling.sql"),
    },
    Migration {
        number: 20,
        name: "identity_claims",
        sql: include_str!("../../migrations/0020_identity_claims.sql"),
    },
    Migration {
        number: 21,
        name: "audit_and_schemes",
        sql: include_str!("../../migrations/0021_audit_and_schemes.sql"),
    },
    Migration {
        number: 22,
        name: "known_values",
        sql: include_str!("../../migrations/0022_known_values.sql"),
    },
    Migration {
        number: 23,
        name: "holds",
        sql: include_str!("../../migrations/0023_holds.sql"),
    },
    Migration {
        number: 24,
        name: "known_skan_events",
        sql: include_str!("../../migrations/0024_known_skan_events.sql"),
    },
    Migration {
        number: 25,
        name: "traffic",
        sql: include_str!("../../migrations/0025_traffic.sql"),
    },
    Migration {
        number: 26,
        name: "accounts_per_organization",
        sql: include_str!("../../migrations/0026_accounts_per_organization.sql"),
    },
    Migration {
        number: 27,
        name: "store_id_claims",
        sql: include_str!("../../migrations/0027_store_id_claims.sql"),
    },
    Migration {
        number: 28,
        name: "unused_indexes",
        sql: include_str!("../../migrations/0028_unused_indexes.sql"),
    },
    Migration {
        number: 29,
        name: "increments_by_app",
        sql: include_str!("../../migrations/0029_increments_by_app.sql"),
    },
    Migration {
        number: 30,
        name: "request_quotas",
        sql: include_str!("../../migrations/0030_request_quotas.sql"),
    },
    Migration {
        number: 31,
        name: "queue_parts",
        sql: include_str!("../../migrations/0031_queue_parts.sql"),
    },
    Migration {
        number: 32,
        name: "resumed_queues",
        sql: include_str!("../../migrations/0032_resumed_queues.sql"),
    },
    Migration {
        number: 33,
        name: "pivots",
        sql: include_str!("../../migrations/0033_pivots.sql"),
    },
    Migration {
        number: 34,
        name: "link_labels",
        sql: include_str!("../../migrations/0034_link_labels.sql"),
    },
    Migration {
        number: 35,
        name: "views",
        sql: include_str!("../../migrations/0035_views.sql"),
    },
    Migration {
        number: 36,
        name: "cost_sources",
        sql: include_str!("../../migrations/0036_cost_sources.sql"),
    },
    Migration {
        number: 37,
        name: "notices",
        sql: include_str!("../../migrations/0037_notices.sql"),
    },
    Migration {
        number: 38,
        name: "consent_and_erasure",
        sql: include_str!("../../migrations/0038_consent_and_erasure.sql"),
    },
    Migration {
        number: 39,
        name: "planner_statistics",
        sql: include_str!("../../migrations/0039_planner_statistics.sql"),
    },
    Migration {
        number: 40,
        name: "password_guesses",
        sql: include_str!("../../migrations/0040_password_guesses.sql"),
    },
    Migration {
        number: 41,
        name: "session_clients",
        sql: include_str!("../../migrations/0041_session_clients.sql"),
    },
    Migration {
        number: 42,
        name: "payers",
        sql: include_str!("../../migrations/0042_payers.sql"),
    },
    Migration {
        number: 43,
        name: "key_owners",
        sql: include_str!("../../migrations/0043_key_owners.sql"),
    },
    Migration {
        number: 44,
        name: "session_proofs",
        sql: include_str!("../../migrations/0044_session_proofs.sql"),
    },
    Migration {
        number: 45,
        name: "second_factors",
        sql: include_str!("../../migrations/0045_second_factors.sql"),
    },
    Migration {
        number: 46,
        name: "password_resets",
        sql: include_str!("../../migrations/0046_password_resets.sql"),
    },
    Migration {
        number: 47,
        name: "audit_chain",
        sql: include_str!("../../migrations/0047_audit_chain.sql"),
    },
    Migration {
        number: 48,
        name: "audit_streams",
        sql: include_str!("../../migrations/0048_audit_streams.sql"),
    },
    Migration {
        number: 49,
        name: "single_sign_on",
        sql: include_str!("../../migrations/0049_single_sign_on.sql"),
    },
    Migration {
        number: 50,
        name: "secret_key_rotation",
        sql: include_str!("../../migrations/0050_secret_key_rotation.sql"),
    },
    Migration {
        number: 51,
        name: "passkeys",
        sql: include_str!("../../migrations/0051_passkeys.sql"),
    },
    Migration {
        number: 52,
        name: "sdk_key_rotation",
        sql: include_str!("../../migrations/0052_sdk_key_rotation.sql"),
    },
    Migration {
        number: 53,
        name: "previous_alert_secrets",
        sql: include_str!("../../migrations/0053_previous_alert_secrets.sql"),
    },
    Migration {
        number: 54,
        name: "creators",
        sql: include_str!("../../migrations/0054_creators.sql"),
    },
];

/// Applies the pending migrations in one transaction.
pub(crate) fn migrate(connection: &mut Connection) -> Result<(), SqliteOpenError> {
    migrate_to(connection, MIGRATIONS)
}

/// Same as [`migrate`], with other migrations.
pub(crate) fn migrate_to(
    connection: &mut Connection,
    migrations: &[Migration],
) -> Result<(), SqliteOpenError> {
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    tx.execute_batch(
        "create table if not exists schema_migrations (
             number integer primary key, name text not null, checksum text not null,
             compatible_from integer
         ) strict",
    )?;
    let applied = applied(&tx)?;
    let pending = pending_migrations(migrations, &applied)?;
    if !pending.is_empty() && !records_compatibility(&tx)? {
        tx.execute_batch("alter table schema_migrations add column compatible_from integer")?;
    }
    for migration in pending {
        tracing::info!(migration.number, migration.name, "applying migration");
        tx.execute_batch(migration.sql)?;
        tx.execute(
            "insert into schema_migrations (number, name, checksum, compatible_from)
             values (?1, ?2, ?3, ?4)",
            (
                migration.number,
                migration.name,
                migration.checksum(),
                migration.compatible_from(),
            ),
        )?;
    }
    tx.commit()?;
    Ok(())
}

/// Returns whether the list of migrations records their compatibility. Versions up to migration 29
/// did not.
fn records_compatibility(connection: &Connection) -> Result<bool, rusqlite::Error> {
    connection.query_row(
        "select exists (select 1 from pragma_table_info('schema_migrations')
                        where name = 'compatible_from')",
        (),
        |row| row.get(0),
    )
}

fn applied(connection: &Connection) -> Result<Vec<AppliedMigration>, rusqlite::Error> {
    let compatible_from = if records_compatibility(connection)? {
        "compatible_from"
    } else {
        "null"
    };
    let sql = format!(
        "select number, checksum, {compatible_from} from schema_migrations order by number"
    );
    connection
        .prepare(&sql)?
        .query_map((), |row| {
            Ok(AppliedMigration {
                number: row.get(0)?,
                checksum: row.get(1)?,
                compatible_from: row.get(2)?,
            })
        })?
        .collect()
}

/// Returns the newest migration in a database, if this version works with all of its migrations.
pub(crate) fn newest_known(
    connection: &Connection,
) -> Result<Result<i64, MigrationRefusal>, rusqlite::Error> {
    let applied = applied(connection)?;
    let newest = applied.last().map_or(0, |step| step.number);
    Ok(pending_migrations(MIGRATIONS, &applied).map(|_| newest))
}

#[cfg(test)]
mod tests;
