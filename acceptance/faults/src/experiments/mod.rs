//! The experiments. Each runs some rounds of one kind of fault on a new instance.

mod backup;
mod clock_steps;
mod disk_condition;
mod kill;
mod networks;
mod overload;
mod power_cut;

pub use backup::back_up_to_failing_disk;
pub use clock_steps::{clock_days, clock_steps};
pub use disk_condition::disk_conditions;
pub use kill::{kill_in_turn, kill_node};
pub use networks::hostile_networks;
pub use overload::overload;
pub use power_cut::{cut_power, cut_power_without_syncs};

use crate::account::Totals;
use crate::postgres::{PostgresFault, break_postgres, fail_over};
use std::pin::Pin;
use std::time::Duration;
use tributary_testkit::Engine;

/// How often and for how long an experiment injects its fault.
#[derive(Debug, Clone, Copy)]
pub struct Episode {
    /// Seed of everything random.
    pub seed: u64,
    /// Number of rounds.
    pub rounds: u64,
    /// Requests that must be acknowledged before each fault.
    pub requests: u64,
    /// Upper bound of the random time that the load goes on before the fault.
    pub load: Duration,
}

impl Episode {
    /// An episode for a test: enough to see the fault take effect.
    pub fn short(seed: u64) -> Self {
        Self {
            seed,
            rounds: 2,
            requests: 100,
            load: Duration::from_millis(300),
        }
    }

    /// An episode of a long run.
    pub fn long(seed: u64) -> Self {
        Self {
            seed,
            rounds: 10,
            requests: 500,
            load: Duration::from_secs(3),
        }
    }
}

type Running = Pin<Box<dyn Future<Output = Totals> + Send>>;

/// An experiment of the long run.
#[derive(Clone, Copy)]
pub struct Experiment {
    /// Name in the account.
    pub fault: &'static str,
    /// Engine under test.
    pub engine: Engine,
    /// How often it runs per turn, compared with the others.
    pub weight: u32,
    /// Runs an episode.
    pub run: fn(Episode) -> Running,
}

/// Lists an experiment.
macro_rules! experiment {
    ($fault:literal, $engine:ident, $weight:literal, $run:expr) => {
        Experiment {
            fault: $fault,
            engine: Engine::$engine,
            weight: $weight,
            run: |episode| Box::pin($run(episode)),
        }
    };
}

/// All experiments.
pub const ALL: [Experiment; 26] = [
    experiment!("SIGKILL, 1 node", Sqlite, 2, |episode| kill_node(
        Engine::Sqlite,
        episode
    )),
    experiment!("power cut", Sqlite, 4, cut_power),
    experiment!(
        "full, read-only, failing and slow disk",
        Sqlite,
        1,
        disk_conditions
    ),
    experiment!(
        "backup to a failing disk",
        Sqlite,
        1,
        back_up_to_failing_disk
    ),
    experiment!("SIGKILL, 1 node", Postgres, 2, |episode| kill_node(
        Engine::Postgres,
        episode
    )),
    experiment!("SIGKILL, 2 nodes", Postgres, 1, |episode| kill_in_turn(
        2, episode
    )),
    experiment!("SIGKILL, 4 nodes", Postgres, 1, |episode| kill_in_turn(
        4, episode
    )),
    experiment!("overload", Sqlite, 1, |episode| overload(
        Engine::Sqlite,
        episode
    )),
    experiment!("hostile networks", Sqlite, 1, |episode| hostile_networks(
        Engine::Sqlite,
        episode
    )),
    experiment!("steps of the clock", Sqlite, 1, |episode| clock_steps(
        Engine::Sqlite,
        episode
    )),
    experiment!("clock a day off", Sqlite, 1, |episode| clock_days(
        Engine::Sqlite,
        episode
    )),
    experiment!("clock a day off", Postgres, 1, |episode| clock_days(
        Engine::Postgres,
        episode
    )),
    experiment!("overload", Postgres, 1, |episode| overload(
        Engine::Postgres,
        episode
    )),
    experiment!("hostile networks", Postgres, 1, |episode| hostile_networks(
        Engine::Postgres,
        episode
    )),
    experiment!("steps of the clock", Postgres, 1, |episode| clock_steps(
        Engine::Postgres,
        episode
    )),
    experiment!("PostgreSQL: crash", Postgres, 2, |episode| break_postgres(
        PostgresFault::Restart,
        episode
    )),
    experiment!("PostgreSQL: frozen", Postgres, 1, |episode| break_postgres(
        PostgresFault::Pause,
        episode
    )),
    experiment!(
        "PostgreSQL: answers to commits lost",
        Postgres,
        2,
        |episode| break_postgres(PostgresFault::LostCommits, episode)
    ),
    experiment!(
        "PostgreSQL: connections cut at random bytes",
        Postgres,
        2,
        |episode| break_postgres(PostgresFault::RandomCuts, episode)
    ),
    experiment!("PostgreSQL: one byte at a time", Postgres, 1, |episode| {
        break_postgres(PostgresFault::OneBytePieces, episode)
    }),
    experiment!("PostgreSQL: one direction stalls", Postgres, 1, |episode| {
        break_postgres(PostgresFault::Stall, episode)
    }),
    experiment!("responses to clients lost", Postgres, 2, |episode| {
        break_postgres(PostgresFault::LostResponses, episode)
    }),
    experiment!("PostgreSQL: deadlocks", Postgres, 1, |episode| {
        break_postgres(PostgresFault::Deadlocks, episode)
    }),
    experiment!("PostgreSQL: no connection left", Postgres, 1, |episode| {
        break_postgres(PostgresFault::TooManyClients, episode)
    }),
    experiment!("PostgreSQL: tables locked", Postgres, 1, |episode| {
        break_postgres(PostgresFault::LockedTables, episode)
    }),
    experiment!(
        "PostgreSQL: failover to the standby",
        Postgres,
        3,
        fail_over
    ),
];
