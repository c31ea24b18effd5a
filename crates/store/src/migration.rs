//! Numbered migrations: append-only, checksummed, applied at start.

use tributary_domain::vocabulary::digest::{Digest, hex};

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
}

/// Reason why a database cannot be migrated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MigrationRefusal {
    /// A newer version of the program has migrated the database.
    #[error(
        "the database has migration {found} of a newer version, this program has {known}; \
         start the newer program, or restore a backup from before the upgrade"
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

/// Returns the migrations that are not applied yet.
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
        let index = usize::try_from(number - 1).expect("numbers start at 1");
        AppliedMigration {
            number,
            checksum: KNOWN[index].checksum(),
        }
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
