//! Bringing the schema up to date.

use crate::connection::OpenError;
use rusqlite::{Connection, TransactionBehavior};
use tributary_store::migration::{Applied, Migration, MigrationRefusal, pending};

/// Every step, in order. Append only: a step that was released is never edited.
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
];

/// Applies what is missing, in one transaction: either all of it or nothing.
pub(crate) fn migrate(connection: &mut Connection) -> Result<(), OpenError> {
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    tx.execute_batch(
        "create table if not exists schema_migrations (
             number integer primary key, name text not null, checksum text not null
         ) strict",
    )?;
    let applied = applied(&tx)?;
    for migration in pending(MIGRATIONS, &applied)? {
        tracing::info!(migration.number, migration.name, "applying a migration");
        tx.execute_batch(migration.sql)?;
        tx.execute(
            "insert into schema_migrations (number, name, checksum) values (?1, ?2, ?3)",
            (migration.number, migration.name, migration.checksum()),
        )?;
    }
    tx.commit()?;
    Ok(())
}

fn applied(connection: &Connection) -> Result<Vec<Applied>, rusqlite::Error> {
    connection
        .prepare("select number, checksum from schema_migrations order by number")?
        .query_map((), |row| {
            Ok(Applied {
                number: row.get(0)?,
                checksum: row.get(1)?,
            })
        })?
        .collect()
}

/// The newest step of a database, if this program knows all that it has.
pub(crate) fn known(
    connection: &Connection,
) -> Result<Result<i64, MigrationRefusal>, rusqlite::Error> {
    let applied = applied(connection)?;
    let newest = applied.last().map_or(0, |step| step.number);
    Ok(pending(MIGRATIONS, &applied).map(|_| newest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn migrated() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        connection
    }

    #[test]
    fn migrating_twice_does_nothing_the_second_time() {
        let mut connection = migrated();
        migrate(&mut connection).unwrap();
    }

    /// Each is asked on the way of something that is recorded, or for a page of the log.
    #[rstest]
    #[case(
        "events where app_id = ?1 and environment = ?2 and device_id = ?3",
        "events_by_device"
    )]
    #[case(
        "events where app_id = ?1 and environment = ?2 and user_id = ?3",
        "events_by_user"
    )]
    #[case(
        "events where app_id = ?1 and environment = ?2 and name = ?3",
        "events_by_name"
    )]
    #[case(
        "identities where app_id = ?1 and environment = ?2 and user_id = ?3",
        "identities_by_user"
    )]
    #[case(
        "devices where app_id = ?1 and environment = ?2 and advertising_id = ?3",
        "devices_by_advertising_id"
    )]
    #[case(
        "notifications where app_id = ?1 and environment = ?2 and provider = ?3 and chain = ?4",
        "notifications_by_chain"
    )]
    #[case(
        "outbox where app_id = ?1 and network = ?2 and due_at <= ?3",
        "outbox_due"
    )]
    #[case(
        "cohort_devices where app_id = ?1 and environment = ?2 and installed_at < ?3",
        "cohort_devices_by_install"
    )]
    #[case("postbacks where app_id = ?1 and key_digest = ?2", "postbacks_by_key")]
    fn what_has_an_index_is_found_by_it(#[case] asked: &str, #[case] index: &str) {
        let explain = format!("explain query plan select * from {asked}");
        let values = rusqlite::params_from_iter(vec![0; asked.matches('?').count()]);
        let plan = |row: &rusqlite::Row<'_>| row.get::<_, String>("detail");
        let found = migrated().query_row(&explain, values, plan);
        let found = found.unwrap();
        assert!(found.contains(&format!("INDEX {index} ")), "{found}");
    }

    #[test]
    fn a_newer_database_is_refused_and_not_touched() {
        let mut connection = migrated();
        connection
            .execute(
                "insert into schema_migrations values (999, 'future', 'x')",
                (),
            )
            .unwrap();
        let refused = migrate(&mut connection);
        assert!(matches!(
            refused,
            Err(OpenError::Migration(MigrationRefusal::DatabaseIsNewer {
                found: 999,
                ..
            }))
        ));
    }
}
