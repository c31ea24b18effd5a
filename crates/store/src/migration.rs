//! Numbered migrations: append-only, checksummed, applied at start.

use tributary_domain::vocabulary::digest::{Digest, hex};

/// One numbered step, as it stands in the binary.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// From 1, without gaps.
    pub number: i64,
    /// What it brings.
    pub name: &'static str,
    /// The statements.
    pub sql: &'static str,
}

impl Migration {
    /// Recognises a step that was edited after it was applied somewhere.
    pub fn checksum(&self) -> String {
        hex(Digest::of(self.sql.as_bytes()).as_bytes())
    }
}

/// A step that a database says it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedMigration {
    /// Its number.
    pub number: i64,
    /// Its checksum at the time.
    pub checksum: String,
}

/// Why a database is not touched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MigrationRefusal {
    /// A newer version of the program was here.
    #[error(
        "the database is of a newer version (migration {found}, this program knows {known}); \
         start the newer program, or restore a backup made before the upgrade"
    )]
    DatabaseIsNewer {
        /// The newest step in the database.
        found: i64,
        /// The newest step in the program.
        known: i64,
    },
    /// A step was changed after it had been applied.
    #[error(
        "migration {number} was applied in another form than this program has; \
         use the program that made this database, or restore a backup"
    )]
    ChecksumDiffers {
        /// Which step.
        number: i64,
    },
}

/// The steps that are still to be applied.
pub fn pending_migrations<'a>(
    known: &'a [Migration],
    applied: &[AppliedMigration],
) -> Result<Vec<&'a Migration>, MigrationRefusal> {
    let newest_known = known.last().map_or(0, |migration| migration.number);
    for step in applied {
        let Some(migration) = known
            .iter()
            .find(|migration| migration.number == step.number)
        else {
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
    Ok(known
        .iter()
        .filter(|migration| !is_applied(migration.number))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let index = usize::try_from(number - 1).expect("numbers begin at 1");
        AppliedMigration {
            number,
            checksum: KNOWN[index].checksum(),
        }
    }

    #[test]
    fn what_is_not_applied_is_pending() {
        let numbers = |applied: &[AppliedMigration]| -> Vec<i64> {
            pending_migrations(KNOWN, applied)
                .expect("admitted")
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
        let newer = AppliedMigration {
            number: 3,
            checksum: String::new(),
        };
        assert_eq!(
            pending_migrations(KNOWN, &[newer]).map(|_| ()),
            Err(MigrationRefusal::DatabaseIsNewer { found: 3, known: 2 })
        );
    }

    #[test]
    fn an_edited_migration_is_refused() {
        let edited = AppliedMigration {
            number: 1,
            checksum: "0".to_owned(),
        };
        assert_eq!(
            pending_migrations(KNOWN, &[edited]).map(|_| ()),
            Err(MigrationRefusal::ChecksumDiffers { number: 1 })
        );
    }
}
