//! Upgrades from every earlier schema, with rows in every table, complete and interrupted.
//!
//! A test creates a database with the first migrations, fills all tables (`rows`), lets the current
//! version migrate it, and compares the rows (`changes`) and the schema with a new database's
//! (`catalog`). Then a server must answer reports from the old figures (`report`).
//!
//! `TRIBUTARY_UPGRADE_KILLS=all` interrupts an upgrade from every schema at random instead of some.

mod catalog;
mod changes;
mod clock;
mod every_schema;
mod postgres_faults;
mod powercut;
mod report;
mod rows;
mod sqlite_faults;

use catalog::{Catalog, Snapshot};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::ops::RangeInclusive;
use tributary_store::migration::Migration;
use tributary_testkit::{Engine, TestDatabase, TextRow};

/// Versions up to this migration did not record the compatibility of migrations, on either engine.
const LAST_UNDECLARED: i64 = 28;

/// Schemas between two from which an upgrade is interrupted at random, in a short run.
const SHORT_RUN_STEP: usize = 12;

/// Returns earlier schemas with a random number from a range each: some of them, or all with
/// `TRIBUTARY_UPGRADE_KILLS=all`.
#[expect(
    clippy::disallowed_methods,
    reason = "a long run interrupts more upgrades"
)]
fn random_interruptions(
    engine: Engine,
    range: impl Fn(i64) -> RangeInclusive<i64>,
) -> Vec<(i64, i64)> {
    let is_long = std::env::var("TRIBUTARY_UPGRADE_KILLS").is_ok_and(|value| value == "all");
    let step = if is_long { 1 } else { SHORT_RUN_STEP };
    let mut random = ChaCha8Rng::seed_from_u64(23);
    let schemas = (1..newest(engine)).map(|from| (from, random.random_range(range(from))));
    schemas.step_by(step).collect()
}

/// A database with an older schema and rows in all tables.
struct OldDatabase {
    database: TestDatabase,
    /// Number of its newest migration.
    from: i64,
    before: Snapshot,
}

/// Returns the first migrations.
fn first_migrations(engine: Engine, count: i64) -> &'static [Migration] {
    &engine.migrations()[..usize::try_from(count).unwrap()]
}

/// Returns the number of the newest migration.
fn newest(engine: Engine) -> i64 {
    engine.migrations().last().unwrap().number
}

impl OldDatabase {
    async fn create(engine: Engine, from: i64) -> Self {
        let database = TestDatabase::separate(engine).await;
        let migrated = database.migrate_with(first_migrations(engine, from));
        migrated.await.unwrap();
        let direct = database.direct_connection().await;
        if from <= LAST_UNDECLARED {
            let older = "alter table schema_migrations drop column compatible_from";
            direct.run(older).await;
        }
        let catalog = Catalog::read(&direct, engine).await;
        rows::fill(&direct, engine, &catalog).await;
        let before = catalog::snapshot(&direct, &catalog).await;
        for (table, rows) in &before {
            assert!(!rows.rows.is_empty(), "{table} has no rows");
        }
        let damage = catalog::damage(&direct, engine).await;
        assert_eq!(damage, Vec::<String>::new(), "schema {from}");
        Self {
            database,
            from,
            before,
        }
    }

    fn engine(&self) -> Engine {
        self.database.engine()
    }

    /// Checks the database after the upgrade. `expected` are the definitions of a new database.
    async fn assert_upgraded(&self, expected: &[TextRow]) {
        self.assert_is_upgraded(&self.database, expected).await;
    }

    /// Checks an upgraded copy of this database.
    async fn assert_is_upgraded(&self, upgraded: &TestDatabase, expected: &[TextRow]) {
        let found = self.problems(upgraded, expected).await;
        assert!(found.is_empty(), "from schema {}: {found:#?}", self.from);
    }

    /// Returns what is wrong with an upgraded copy of this database.
    async fn problems(&self, upgraded: &TestDatabase, expected: &[TextRow]) -> Vec<String> {
        let engine = self.engine();
        let direct = upgraded.direct_connection().await;
        let mut found = catalog::damage(&direct, engine).await;
        let catalog = Catalog::read(&direct, engine).await;
        let after = catalog::snapshot(&direct, &catalog).await;
        found.extend(changes::differences(
            engine,
            self.from,
            &self.before,
            &after,
        ));
        let definitions = catalog::definitions(&direct, engine).await;
        let others = |these: &[TextRow], those: &[TextRow], what: &str| -> Vec<String> {
            let these = these.iter().filter(|row| !those.contains(row));
            these.map(|row| format!("{what}: {row:?}")).collect()
        };
        found.extend(others(&definitions, expected, "not in a new database"));
        found.extend(others(expected, &definitions, "only in a new database"));
        found
    }
}

/// Returns the definitions of a new database.
async fn new_definitions(engine: Engine) -> Vec<TextRow> {
    let database = TestDatabase::separate(engine).await;
    database.migrate_with(engine.migrations()).await.unwrap();
    catalog::definitions(&database.direct_connection().await, engine).await
}
