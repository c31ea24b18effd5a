//! The database engine under test.

use crate::machine;
use crate::report::{millis, print_line};
use clap::ValueEnum;
use serde::Serialize;
use tributary_testkit::{Engine, TestDatabase};

/// The `--engine` option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EngineArgument {
    Sqlite,
    Postgres,
}

impl EngineArgument {
    pub(crate) const fn engine(self) -> Engine {
        match self {
            Self::Sqlite => Engine::Sqlite,
            Self::Postgres => Engine::Postgres,
        }
    }

    /// Describes the durability of an acknowledged event.
    pub(crate) const fn durability(self) -> &'static str {
        match self {
            Self::Sqlite => {
                "SQLite, durable: the write-ahead log is synced to disk before the response"
            }
            Self::Postgres => {
                "PostgreSQL, durable: synchronous_commit=on, fsync=on; commits before the response"
            }
        }
    }

    /// Prints the conditions of a run.
    pub(crate) fn print_conditions(self, database: &TestDatabase) -> anyhow::Result<()> {
        print_line(self.durability());
        print_line(format_args!(
            "{} cores for server, database and load; syncing 8 kB takes {}",
            machine::cores(),
            millis(machine::sync_time(&database.folder())?)
        ));
        Ok(())
    }
}
