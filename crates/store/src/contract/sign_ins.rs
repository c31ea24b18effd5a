//! Password guesses.

use super::fixtures::{CLIENT, SharedStore, at, first_page, organization, origin, unique};
use super::sessions::user;
use std::collections::BTreeSet;
use std::time::Duration;
use tributary_domain::access::person::Role;
use tributary_domain::access::sign_in::{CountedGuess, FREE_GUESSES, GuessCounter, GuessDecision};
use tributary_domain::audit::Action;
use tributary_domain::vocabulary::id::UserId;

fn counter() -> GuessCounter {
    GuessCounter::of_browser(UserId::new(at(0), unique()), b"a browser")
}

async fn guess(
    store: &SharedStore,
    counters: &[GuessCounter],
    seconds: i64,
) -> Option<CountedGuess> {
    let decision = store.count_guess(counters.to_vec(), at(seconds)).await;
    match decision.expect("a decision") {
        GuessDecision::Allowed(guess) => Some(guess),
        GuessDecision::Wait(_) => None,
    }
}

/// Of many guesses at the same time, the free ones are allowed.
pub async fn guesses_at_the_same_time_are_limited(store: &SharedStore) {
    let (account, networks) = (counter(), [counter(), counter()]);
    let guesses = (0..40).map(|index| {
        let (store, network) = (store.clone(), networks[index % 2]);
        // In both orders.
        let mut counters = vec![account, network];
        counters.rotate_left(index % 4 / 2);
        tokio::spawn(async move { guess(&store, &counters, 10).await.is_some() })
    });
    let guesses: Vec<_> = guesses.collect();
    let mut allowed = 0;
    for guess in guesses {
        allowed += u32::from(guess.await.expect("no panic"));
    }
    assert_eq!(allowed, FREE_GUESSES);
    assert!(guess(store, &[account], 10).await.is_none());
    assert!(guess(store, &[account], 21).await.is_some());
    assert!(guess(store, &[account], 22).await.is_none());
    let other = guess(store, &[counter()], 10).await;
    assert!(other.is_some(), "other counters are not affected");
}

/// A guess that waits is not counted.
pub async fn a_refused_guess_is_not_counted(store: &SharedStore) {
    let (account, network) = (counter(), counter());
    for _ in 0..FREE_GUESSES {
        assert!(guess(store, &[account], 10).await.is_some());
    }
    for _ in 0..3 {
        assert!(guess(store, &[account, network], 11).await.is_none());
    }
    let first = guess(store, &[network], 12).await.expect("allowed");
    assert_eq!(first.counters, [(network, None)]);
}

/// Whether a guess has to wait can be asked without counting one.
pub async fn a_wait_is_read_without_counting(store: &SharedStore) {
    let account = counter();
    let wait = async |seconds| {
        store
            .guess_wait(account, at(seconds))
            .await
            .expect("a read")
    };
    for _ in 0..FREE_GUESSES {
        for _ in 0..FREE_GUESSES {
            assert_eq!(wait(10).await, None);
        }
        assert!(guess(store, &[account], 10).await.is_some());
    }
    assert_eq!(wait(12).await, Some(Duration::from_secs(8)));
    assert_eq!(wait(20).await, None);
    let allowed = guess(store, &[account], 20).await.expect("allowed");
    let before = allowed.counters[0].1.expect("guesses");
    assert_eq!((before.count, before.last_at), (FREE_GUESSES, at(10)));
}

/// A right password does not use up guesses. Guesses that are not checked do.
pub async fn a_right_password_is_taken_back(store: &SharedStore) {
    let (account, network) = (counter(), counter());
    for second in 0..20 {
        let guess = guess(store, &[account, network], second).await;
        let taken_back = store.take_back_guess(guess.expect("allowed")).await;
        taken_back.expect("a write");
    }
    for _ in 0..FREE_GUESSES {
        let added = store.add_guess(account, at(20)).await;
        added.expect("a write");
    }
    assert!(guess(store, &[account], 21).await.is_none());
    assert!(guess(store, &[network], 21).await.is_some());
}

/// Guesses expire, and so does their storage.
pub async fn old_guesses_are_removed(store: &SharedStore) {
    let account = counter();
    for _ in 0..FREE_GUESSES {
        assert!(guess(store, &[account], 10).await.is_some());
    }
    let later = guess(store, &[account], 10 + 60 * 60).await;
    assert!(later.is_some());
    for _ in 0..3 {
        // An expired counter of another account goes with any guess.
        assert!(guess(store, &[counter()], 10 + 3 * 60 * 60).await.is_some());
    }
    let gone = guess(store, &[account], 10 + 3 * 60 * 60).await;
    assert_eq!(gone.expect("allowed").counters, [(account, None)]);
}

/// A failed sign-in is in the audit log of each user's organization.
pub async fn a_failed_sign_in_is_audited(store: &SharedStore) {
    let (one, two) = (organization(store).await, organization(store).await);
    let first = user(store, one.organization(), Role::Analyst).await;
    let second = user(store, two.organization(), Role::Owner).await;
    let users = vec![(first.clone(), origin(9)), (second, origin(9))];
    let written = store.audit_failed_sign_in(users).await;
    written.expect("a write");
    let page = store
        .audit_log(&one.read_access(), None, first_page("100"))
        .await;
    let entries = page.expect("a page").items;
    let failed: Vec<_> = entries
        .iter()
        .filter(|entry| entry.action == Action::UserSignInFailed)
        .collect();
    for entry in &failed {
        assert_eq!(entry.address, Some(CLIENT.to_string()));
        assert_eq!(entry.request_id.as_deref(), Some("request"));
    }
    let targets: BTreeSet<&str> = failed.iter().map(|entry| entry.target.as_str()).collect();
    assert_eq!(targets, BTreeSet::from([first.id.to_string().as_str()]));
}
