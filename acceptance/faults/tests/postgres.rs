//! A short version of each PostgreSQL fault, and counter-tests.

use tributary_faults::experiments::Episode;
use tributary_faults::postgres::{
    PostgresFault, break_postgres_in_turn, fail_over, fail_over_without_standby,
    trust_unanswered_requests,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_of_postgres_lose_and_double_nothing() {
    let totals = break_postgres_in_turn(&PostgresFault::ALL, Episode::short(31)).await;
    totals.assert_clean("PostgreSQL");
    assert_eq!(totals.rounds, PostgresFault::ALL.len() as u64);
    assert!(totals.unknown > 0, "no request was interrupted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failovers_lose_and_double_nothing() {
    let totals = fail_over(Episode::short(32)).await;
    totals.assert_clean("failover");
    assert!(totals.unknown > 0, "no request was interrupted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_trusts_unanswered_requests_is_noticed() {
    let totals = trust_unanswered_requests(Episode::short(33)).await;
    assert!(totals.lost > 0, "{totals:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_to_a_standby_that_is_behind_is_noticed() {
    let totals = fail_over_without_standby(Episode::short(34)).await;
    assert!(totals.lost > 0, "{totals:#?}");
}
