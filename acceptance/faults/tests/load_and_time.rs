//! Short versions of the experiments with overload, hostile networks and clocks.

use tributary_faults::experiments::{Episode, clock_steps, hostile_networks, overload};
use tributary_testkit::Engine;

/// An episode with one burst beside 2,000 idle connections.
fn one_burst(seed: u64) -> Episode {
    Episode {
        rounds: 1,
        ..Episode::short(seed)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overload_is_shed_and_forgotten_on_sqlite() {
    let totals = overload(Engine::Sqlite, one_burst(21)).await;
    totals.assert_clean("overload, SQLite");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overload_is_shed_and_forgotten_on_postgres() {
    let totals = overload(Engine::Postgres, one_burst(22)).await;
    totals.assert_clean("overload, PostgreSQL");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn networks_may_misbehave_under_load_on_sqlite() {
    let totals = hostile_networks(Engine::Sqlite, Episode::short(23)).await;
    totals.assert_clean("hostile networks, SQLite");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn networks_may_misbehave_under_load_on_postgres() {
    let totals = hostile_networks(Engine::Postgres, Episode::short(24)).await;
    totals.assert_clean("hostile networks, PostgreSQL");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_may_step_under_load_on_sqlite() {
    let totals = clock_steps(Engine::Sqlite, Episode::short(25)).await;
    totals.assert_clean("steps of the clock, SQLite");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_may_step_under_load_on_postgres() {
    let totals = clock_steps(Engine::Postgres, Episode::short(26)).await;
    totals.assert_clean("steps of the clock, PostgreSQL");
}
