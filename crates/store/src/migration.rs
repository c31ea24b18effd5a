//! Numbered migrations: append-only, checksummed, applied at start.
//!
//! Programs of two adjacent versions may share a database while an operator replaces one node after
//! the other. The newer version only adds to the schema (expand); a later version removes what its
//! predecessor no longer uses (contract). Each migration declares the oldest program that still works
//! with it, in a line of its SQL file:
//!
//! * `-- Compatible from: 28`: programs whose newest migration is 28 or later work with it. The
//!   migration's own number means that all older nodes must be stopped.
//! * `-- Outside a transaction`: the statements run one by one, because they build an index
//!   `concurrently`. Each ends with a semicolon at the end of a line.

use tributary_domain::vocabulary::digest::{Digest, hex};

/// Begins the line that declares which programs work with a migration.
const COMPATIBLE_FROM: &str = "-- Compatible from: ";
/// The line that keeps a migration out of a transaction.
const OUTSIDE_TRANSACTION: &str = "-- Outside a transaction";

/// A numbered migration in the binary.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// Number, from 1 without gaps.
    pub number: i64,
    /// Short description.
    pub name: &'static str,
    /// SQL statements.
    pub sql: &'static str,
}

impl Migration {
    /// Returns the oldest program, by its newest migration, that works with this migration. Without a
    /// declaration, no older program does.
    pub fn compatible_from(&self) -> i64 {
        self.declared_compatibility().unwrap_or(self.number)
    }

    fn declared_compatibility(&self) -> Option<i64> {
        let mut lines = self.sql.lines();
        let declared = lines.find_map(|line| line.strip_prefix(COMPATIBLE_FROM))?;
        let from = declared.parse().ok()?;
        (1..=self.number).contains(&from).then_some(from)
    }

    /// Returns whether the statements run one by one, outside a transaction.
    pub fn is_outside_transaction(&self) -> bool {
        self.sql.lines().any(|line| line == OUTSIDE_TRANSACTION)
    }

    /// Returns the statements of a migration that runs outside a transaction.
    pub fn statements(&self) -> impl Iterator<Item = &'static str> {
        let parts = self.sql.split_inclusive(";\n");
        parts.filter(|part| part.contains(';'))
    }

    /// Returns the SQL for a database on which no other node runs: in one transaction.
    pub fn sql_in_transaction(&self) -> String {
        if self.is_outside_transaction() {
            self.sql.replace(" concurrently", "")
        } else {
            self.sql.to_owned()
        }
    }

    /// Returns the checksum, which detects a migration that was edited after it was applied.
    pub fn checksum(&self) -> String {
        hex(Digest::of(self.sql.as_bytes()).as_bytes())
    }
}

/// A migration recorded in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedMigration {
    /// Number of the migration.
    pub number: i64,
    /// Checksum when the migration was applied.
    pub checksum: String,
    /// Oldest program that works with the migration. `None` if a version that did not record it has
    /// applied the migration: then no older program does.
    pub compatible_from: Option<i64>,
}

/// Reason why a database cannot be migrated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MigrationRefusal {
    /// A newer version of the program has migrated the database.
    #[error(
        "the database has migration {found} of a newer version that does not work with this program, \
         which has {known}; start the newer program, or restore a backup from before the upgrade"
    )]
    DatabaseIsNewer {
        /// Newest migration in the database.
        found: i64,
        /// Newest migration in the program.
        known: i64,
    },
    /// A migration was edited after it had been applied.
    #[error(
        "migration {number} differs from the one applied to this database; \
         use the program version that created the database, or restore a backup"
    )]
    ChecksumDiffers {
        /// Number of the migration.
        number: i64,
    },
}

/// Returns the migrations that are not applied yet. A program runs on a newer database if every
/// migration that it does not know is compatible with it.
pub fn pending_migrations<'a>(
    migrations: &'a [Migration],
    applied: &[AppliedMigration],
) -> Result<Vec<&'a Migration>, MigrationRefusal> {
    let newest_known = migrations.last().map_or(0, |migration| migration.number);
    for step in applied {
        let Some(migration) = migrations
            .iter()
            .find(|migration| migration.number == step.number)
        else {
            if is_compatible(step, newest_known) {
                continue;
            }
            return Err(MigrationRefusal::DatabaseIsNewer {
                found: step.number,
                known: newest_known,
            });
        };
        if migration.checksum() != step.checksum {
            return Err(MigrationRefusal::ChecksumDiffers {
                number: step.number,
            });
        }
    }
    let is_applied = |number| applied.iter().any(|step| step.number == number);
    Ok(migrations
        .iter()
        .filter(|migration| !is_applied(migration.number))
        .collect())
}

/// Returns whether a program works with a migration that it does not know.
fn is_compatible(step: &AppliedMigration, newest_known: i64) -> bool {
    let is_newer = step.number > newest_known;
    is_newer
        && step
            .compatible_from
            .is_some_and(|from| from <= newest_known)
}

/// Returns whether nodes of the version that migrated last may keep running while these migrations
/// are applied. If not, all of them are applied in one transaction, so that a failure leaves the
/// database to the older version.
pub fn allows_older_nodes(pending: &[&Migration], applied: &[AppliedMigration]) -> bool {
    let newest = applied.iter().map(|step| step.number).max();
    newest.is_some_and(|newest| pending.iter().all(|step| step.compatible_from() <= newest))
}

/// Returns the first migration after `number` that does not declare which programs work with it.
pub fn undeclared_after(migrations: &[Migration], number: i64) -> Option<i64> {
    let mut later = migrations.iter().filter(|step| step.number > number);
    let undeclared = later.find(|step| step.declared_compatibility().is_none());
    undeclared.map(|step| step.number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const KNOWN: &[Migration] = &[
        Migration {
            number: 1,
            name: "one",
            sql: "create table a (x)",
        },
        Migration {
            number: 2,
            name: "two",
            sql: "create table b (x)",
        },
    ];

    fn applied(number: i64) -> AppliedMigration {
        let index = usize::try_from(number - 1).expect("numbers start at 1");
        AppliedMigration {
            number,
            checksum: KNOWN[index].checksum(),
            compatible_from: None,
        }
    }

    /// A step that the program of [`KNOWN`] does not have.
    fn unknown(number: i64, compatible_from: Option<i64>) -> AppliedMigration {
        AppliedMigration {
            number,
            checksum: "x".to_owned(),
            compatible_from,
        }
    }

    #[rstest]
    #[case::adjacent(&[(3, Some(2))], None)]
    #[case::older_programs_too(&[(3, Some(1))], None)]
    #[case::two_ahead(&[(3, Some(2)), (4, Some(2))], None)]
    #[case::contracted(&[(3, Some(2)), (4, Some(3))], Some(4))]
    #[case::declared_incompatible(&[(3, Some(3))], Some(3))]
    #[case::one_of_them_incompatible(&[(3, Some(3)), (4, Some(2))], Some(3))]
    #[case::not_declared(&[(3, None)], Some(3))]
    #[case::not_newer(&[(0, Some(0))], Some(0))]
    fn a_program_runs_on_a_newer_database_if_it_is_compatible(
        #[case] newer: &[(i64, Option<i64>)],
        #[case] refused: Option<i64>,
    ) {
        let mut steps = vec![applied(1), applied(2)];
        steps.extend(newer.iter().map(|(number, from)| unknown(*number, *from)));
        let outcome = pending_migrations(KNOWN, &steps).map(|pending| pending.len());
        let expected = refused.map(|found| MigrationRefusal::DatabaseIsNewer { found, known: 2 });
        assert_eq!(outcome, expected.map_or(Ok(0), Err));
    }

    const fn step(number: i64, sql: &'static str) -> Migration {
        Migration {
            number,
            name: "step",
            sql,
        }
    }

    #[rstest]
    #[case::declared("-- Why.\n-- Compatible from: 7\nselect 1", 7)]
    #[case::itself("-- Compatible from: 9\nselect 1", 9)]
    #[case::not_declared("select 1", 9)]
    #[case::later_than_itself("-- Compatible from: 10\nselect 1", 9)]
    #[case::no_number("-- Compatible from: before\nselect 1", 9)]
    fn a_migration_declares_its_compatibility(#[case] sql: &'static str, #[case] expected: i64) {
        assert_eq!(step(9, sql).compatible_from(), expected);
    }

    #[rstest]
    #[case::new_database(&[], 2, false)]
    #[case::compatible(&[1, 2], 2, true)]
    #[case::compatible_with_older_ones(&[1, 2], 1, true)]
    #[case::only_with_a_version_in_between(&[1], 2, false)]
    fn older_nodes_keep_running_if_every_step_allows_it(
        #[case] present: &[i64],
        #[case] from: i64,
        #[case] expected: bool,
    ) {
        let sql = ["", "-- Compatible from: 1\n", "-- Compatible from: 2\n"];
        let index = usize::try_from(from).expect("a small number");
        let pending = [step(3, "-- Compatible from: 1\n"), step(4, sql[index])];
        let steps: Vec<AppliedMigration> = present.iter().copied().map(applied).collect();
        let pending: Vec<&Migration> = pending.iter().collect();
        assert_eq!(allows_older_nodes(&pending, &steps), expected);
    }

    #[test]
    fn finds_migrations_without_a_declaration() {
        let steps = [step(1, ""), step(2, "-- Compatible from: 1\n"), step(3, "")];
        assert_eq!(undeclared_after(&steps, 0), Some(1));
        assert_eq!(undeclared_after(&steps, 1), Some(3));
        assert_eq!(undeclared_after(&steps, 3), None);
    }

    #[test]
    fn statements_outside_a_transaction_run_one_by_one() {
        let sql = "-- Compatible from: 1\n-- Outside a transaction\n\
                   drop index concurrently if exists x;\ncreate index concurrently x\n    on t (a);\n";
        let outside = step(2, sql);
        assert!(outside.is_outside_transaction());
        let statements: Vec<&str> = outside.statements().collect();
        assert_eq!(statements.len(), 2, "{statements:?}");
        assert!(statements[1].starts_with("create index concurrently x"));
        assert!(!outside.sql_in_transaction().contains("concurrently"));
        let inside = step(2, "create index x on t (a);\n");
        assert!(!inside.is_outside_transaction());
        assert_eq!(inside.sql_in_transaction(), inside.sql);
    }

    #[test]
    fn returns_unapplied_migrations() {
        let numbers = |applied: &[AppliedMigration]| -> Vec<i64> {
            pending_migrations(KNOWN, applied)
                .expect("accepted")
                .iter()
                .map(|m| m.number)
                .collect()
        };
        assert_eq!(numbers(&[]), [1, 2]);
        assert_eq!(numbers(&[applied(1)]), [2]);
        assert_eq!(numbers(&[applied(1), applied(2)]), [0_i64; 0]);
    }

    #[test]
    fn a_newer_database_is_refused() {
        assert_eq!(
            pending_migrations(KNOWN, &[unknown(3, None)]).map(|_| ()),
            Err(MigrationRefusal::DatabaseIsNewer { found: 3, known: 2 })
        );
    }

    #[test]
    fn an_edited_migration_is_refused() {
        let edited = AppliedMigration {
            number: 1,
            checksum: "0".to_owned(),
            compatible_from: None,
        };
        assert_eq!(
            pending_migrations(KNOWN, &[edited]).map(|_| ()),
            Err(MigrationRefusal::ChecksumDiffers { number: 1 })
        );
    }
}
