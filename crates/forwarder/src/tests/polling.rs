//! Polls for due work.

use super::scene;
use crate::POLL_RETRY_WAIT;
use crate::polling::{DueReceiver, POLL_INTERVAL, Poller};
use async_trait::async_trait;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use tributary_domain::due_work::WorkKind;
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{DueKinds, StoreError, StoreResult};

const QUEUE: WorkKind = WorkKind::Deliveries(Network::C);

/// Answers polls from a list. `None` is a failure, and increments cause a panic, because workers do not
/// look for them. Nothing is due after the end of the list.
struct ListedAnswers(Mutex<std::vec::IntoIter<Option<WorkKind>>>);

#[async_trait]
impl DueKinds for ListedAnswers {
    async fn due_kinds(&self, _: Timestamp) -> StoreResult<BTreeSet<WorkKind>> {
        let failure = || StoreError::unavailable("due_kinds", std::io::Error::other("down"));
        let answer = self.0.lock().unwrap().next();
        assert_ne!(answer, Some(Some(WorkKind::Increments)), "a bug");
        match answer {
            Some(answer) => Ok(BTreeSet::from([answer.ok_or_else(failure)?])),
            None => Ok(BTreeSet::new()),
        }
    }
}

/// Starts polling. Returns a receiver.
fn start(answers: Vec<Option<WorkKind>>, stop: Duration) -> DueReceiver {
    let answers = Arc::new(ListedAnswers(Mutex::new(answers.into_iter())));
    let poller = Poller::new(answers, scene::runtime(Arc::default()));
    let receiver = poller.subscribe();
    tokio::spawn(poller.run(tokio::time::sleep(stop)));
    receiver
}

#[tokio::test(start_paused = true)]
async fn each_poll_is_received_until_the_stop() {
    let mut due = start(
        vec![Some(QUEUE), Some(WorkKind::Alerts)],
        POLL_INTERVAL * 7 / 2,
    );
    assert_eq!(due.next_poll().await, Some(BTreeSet::from([QUEUE])));
    assert_eq!(
        due.next_poll().await,
        Some(BTreeSet::from([WorkKind::Alerts]))
    );
    assert_eq!(due.next_poll().await, Some(BTreeSet::new()));
    assert_eq!(due.next_poll().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_fails_or_panics_is_retried_later() {
    let begun = Instant::now();
    let answers = vec![None, Some(WorkKind::Increments), Some(QUEUE)];
    let mut due = start(answers, Duration::from_mins(1));
    assert_eq!(due.next_poll().await, Some(BTreeSet::from([QUEUE])));
    assert_eq!(begun.elapsed(), POLL_INTERVAL + POLL_RETRY_WAIT * 2);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_kind_ignores_earlier_polls_and_other_kinds() {
    let answers = [QUEUE, WorkKind::Trials, QUEUE].map(Some).to_vec();
    let mut due = start(answers, Duration::from_mins(1));
    let begun = Instant::now();
    tokio::time::sleep(POLL_INTERVAL + POLL_INTERVAL / 2).await;
    assert_eq!(due.wait_until_due(QUEUE).await, Some(()));
    assert_eq!(begun.elapsed(), POLL_INTERVAL * 3);
    assert_eq!(due.wait_until_due(QUEUE).await, None, "polling has ended");
}
