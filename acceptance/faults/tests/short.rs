//! A short version of each experiment, and counter-tests that show that the account notices what it
//! looks for.

use tributary_faults::experiments::{
    Episode, back_up_to_failing_disk, cut_power, cut_power_without_syncs, disk_conditions,
    kill_in_turn, kill_node,
};
use tributary_testkit::Engine;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_loses_and_doubles_nothing_on_sqlite() {
    let totals = kill_node(Engine::Sqlite, Episode::short(11)).await;
    totals.assert_clean("SIGKILL, SQLite");
    assert!(totals.unknown > 0, "no request was interrupted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_loses_and_doubles_nothing_on_postgres() {
    let totals = kill_node(Engine::Postgres, Episode::short(12)).await;
    totals.assert_clean("SIGKILL, PostgreSQL");
    assert!(totals.unknown > 0, "no request was interrupted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_among_four_nodes_lose_and_double_nothing() {
    let totals = kill_in_turn(4, Episode::short(13)).await;
    totals.assert_clean("SIGKILL, 4 nodes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn power_cuts_lose_and_damage_nothing() {
    let episode = Episode {
        rounds: 4,
        ..Episode::short(14)
    };
    cut_power(episode).await.assert_clean("power cut");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_may_fill_up_fail_and_heal() {
    let totals = disk_conditions(Episode::short(15)).await;
    totals.assert_clean("disk conditions");
    assert!(totals.unknown > 0, "no request met the condition");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_power_cut_without_syncs_is_noticed() {
    let episode = Episode {
        rounds: 1,
        ..Episode::short(16)
    };
    let totals = cut_power_without_syncs(episode).await;
    assert!(totals.lost > 0, "{totals:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_complete_or_absent() {
    let totals = back_up_to_failing_disk(Episode::short(17)).await;
    totals.assert_clean("backup");
}
