//! Complete upgrades, and the proof that the comparison notices a broken migration.

use super::{OldDatabase, first_migrations, new_definitions, newest, report};
use std::ops::RangeInclusive;
use tributary_store::migration::Migration;
use tributary_testkit::{Engine, ServerProcess, on_both_engines};

/// Upgrades a database from each of these schemas with the binary and starts a server on it.
async fn upgrade_from(engine: Engine, schemas: RangeInclusive<i64>) {
    let definitions = new_definitions(engine).await;
    for from in schemas {
        let old = OldDatabase::create(engine, from).await;
        let printed =
            tokio::task::block_in_place(|| ServerProcess::run(&old.database, &["migrate"]));
        let printed = printed.unwrap_or_else(|error| panic!("from schema {from}: {error}"));
        let done = format!("is at migration {}.", newest(engine));
        assert!(printed.ends_with(&done), "{printed}");
        old.assert_upgraded(&definitions).await;
        let server = ServerProcess::start(&old.database).await;
        report::assert_answers(&server, from).await;
        assert!(server.terminate().success());
    }
}

on_both_engines! {
    async fn upgrades_from_the_oldest_schemas_keep_all_rows(engine: Engine) {
        upgrade_from(engine, 1..=13).await;
    }

    async fn upgrades_from_the_middle_schemas_keep_all_rows(engine: Engine) {
        upgrade_from(engine, 14..=26).await;
    }

    async fn upgrades_from_the_newest_schemas_keep_all_rows(engine: Engine) {
        upgrade_from(engine, 27..=newest(engine)).await;
    }
}

/// Migrations that lose or change something.
const BROKEN: [(&str, &str); 7] = [
    (
        "delete from costs where campaign_id like '%2%'",
        "costs: 2 rows",
    ),
    (
        "update costs set usd_micros = usd_micros + 1 where day > 0",
        "costs: the row",
    ),
    (
        "insert into known_values select app_id, kind, 'added' from known_values",
        "known_values: ",
    ),
    ("drop table erase_tokens", "erase_tokens is missing"),
    (
        "alter table costs drop column rate_day",
        "costs: the column rate_day is missing",
    ),
    ("drop index events_by_user", "only in a new database"),
    ("create index added on costs (day)", "not in a new database"),
];

on_both_engines! {
    async fn a_broken_migration_is_noticed(engine: Engine) {
        let definitions = new_definitions(engine).await;
        let newest = newest(engine);
        for (sql, expected) in BROKEN {
            let old = OldDatabase::create(engine, newest).await;
            let mut migrations = first_migrations(engine, newest).to_vec();
            migrations.push(Migration { number: newest + 1, name: "broken", sql });
            old.database.migrate_with(&migrations).await.unwrap();
            let found = old.problems(&old.database, &definitions).await;
            let is_noticed = found.iter().any(|problem| problem.contains(expected));
            assert!(is_noticed, "{sql}: {found:#?}");
        }
    }
}
