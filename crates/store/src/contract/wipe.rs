//! Wiping the test data of an app.

use super::fixtures::{SharedStore, assert_rebuild_changes_nothing, first_page, origin, refusal};
use super::reports::all_answers;
use super::sdk_fixtures::{event, payment};
use super::wipe_fixtures::{PHONE, STRANGER, WIPED_AT, shown_data, wipe_scenario};
use crate::run_wipe;
use tributary_domain::access::{Authorized, Environment};
use tributary_domain::audit::Action;
use tributary_domain::event::sdk::SdkEventOutcome;
use tributary_domain::install::ConfigureCommand;
use tributary_domain::refusal::Refusal;
use tributary_domain::wipe::{WipeStep, WipedRows};

/// No list and no report shows anything of the test environment afterwards. The live environment
/// has data with the same ids, and shows the same as before.
pub async fn a_wipe_removes_test_data_and_nothing_else(store: &SharedStore) {
    let app = wipe_scenario(store).await;
    let empty = shown_data(&app.test).await;
    app.fill(Environment::Live).await;
    app.fill(Environment::Test).await;
    let other = wipe_scenario(store).await;
    other.fill(Environment::Test).await;
    let live = shown_data(&app.live).await;
    let others = shown_data(&other.test).await;
    let test = shown_data(&app.test).await;
    assert!(test.events.len() > 5 && test.clicks.len() == 1, "{test:?}");
    assert!(!test.billing.is_empty() && !test.reports.is_empty());
    let removed = app.wipe().await;
    assert_eq!((removed.clicks, removed.notifications), (1, 2));
    assert_eq!(usize::try_from(removed.events), Ok(test.events.len()));
    assert!(removed.devices == 1 && removed.figures > 10, "{removed:?}");
    assert_eq!(shown_data(&app.test).await, empty);
    assert_eq!(shown_data(&app.live).await, live);
    assert_eq!(shown_data(&other.test).await, others);
    assert_rebuild_changes_nothing(store).await;
    assert_eq!(app.wipe().await, WipedRows::default());
    assert_eq!(shown_data(&app.live).await, live);
}

/// Devices, event ids and notification ids are new again, and count as they did the first time.
pub async fn wiped_ids_are_accepted_again(store: &SharedStore) {
    let app = wipe_scenario(store).await;
    app.fill(Environment::Live).await;
    app.fill(Environment::Test).await;
    let before = all_answers(&app.test).await;
    let repeated = || vec![payment("paid-1", "5", "USD", 80)];
    let outcomes = app.send(Environment::Test, PHONE, 130, repeated()).await;
    assert_eq!(outcomes, [SdkEventOutcome::Duplicate]);
    app.wipe().await;
    // Asserts that everything is new.
    app.fill(Environment::Test).await;
    assert_eq!(all_answers(&app.test).await, before);
    for environment in [Environment::Live, Environment::Test] {
        let outcomes = app.send(environment, PHONE, 140, repeated()).await;
        assert_eq!(outcomes, [SdkEventOutcome::Duplicate]);
    }
    assert_rebuild_changes_nothing(store).await;
}

/// A wipe may stop after any transaction, for example because the server stops.
pub async fn an_interrupted_wipe_is_finished_by_the_next(store: &SharedStore) {
    let app = wipe_scenario(store).await;
    let empty = shown_data(&app.test).await;
    app.fill(Environment::Live).await;
    for parts in 1.. {
        app.fill(Environment::Test).await;
        let live = shown_data(&app.live).await;
        let mut next = Some(WipeStep::Begin);
        for _ in 0..parts {
            let Some(step) = next else { break };
            next = app.wipe_part(step, WIPED_AT).await.next;
        }
        assert_eq!(shown_data(&app.live).await, live, "after {parts} parts");
        let is_interrupted = next.is_some();
        let removed = app.wipe().await;
        assert!(is_interrupted || removed.total() == 0);
        assert_eq!(shown_data(&app.test).await, empty, "after {parts} parts");
        assert_eq!(shown_data(&app.live).await, live, "after {parts} parts");
        assert_rebuild_changes_nothing(store).await;
        if !is_interrupted {
            assert!(parts > 8, "only {parts} parts");
            return;
        }
    }
}

/// Requests with a test key go on during a wipe. What is left of them afterwards counts right.
pub async fn data_that_arrives_during_a_wipe_counts_right(store: &SharedStore) {
    const BEGIN: i64 = 300;
    let app = wipe_scenario(store).await;
    app.fill(Environment::Live).await;
    app.fill(Environment::Test).await;
    let live = shown_data(&app.live).await;
    let mut next = Some(WipeStep::Begin);
    let mut second = BEGIN;
    while let Some(step) = next {
        next = app.wipe_part(step, BEGIN).await.next;
        second += 1;
        let mut opened = app.live.click(second);
        opened.environment = Some(Environment::Test);
        let device = format!("late-{second}");
        let call = ConfigureCommand {
            environment: Environment::Test,
            app_link_click: Some(opened),
            ..app.live.configure(&device, second)
        };
        app.live.call_configure(call).await;
        for device in [PHONE, STRANGER, device.as_str()] {
            let paid = payment(&format!("paid-{device}-{second}"), "5", "USD", second);
            let opened = event(&format!("open-{device}-{second}"), "open", second);
            let outcomes = app
                .send(Environment::Test, device, second, vec![paid, opened])
                .await;
            assert_eq!(outcomes, [SdkEventOutcome::Accepted; 2]);
        }
    }
    assert_eq!(shown_data(&app.live).await, live);
    assert_rebuild_changes_nothing(store).await;
    let left = shown_data(&app.test).await;
    assert!(!left.events.is_empty(), "the last requests are left");
    let figures = app.test.figures().await;
    let clicks: i64 = figures.iter().map(|(_, one)| one.clicks).sum();
    assert_eq!(usize::try_from(clicks), Ok(left.clicks.len()));
    let events: i64 = figures.iter().map(|(_, one)| one.events).sum();
    assert_eq!(usize::try_from(events), Ok(left.events.len()));
    let empty = shown_data(&wipe_scenario(store).await.test).await;
    app.wipe().await;
    assert_eq!(shown_data(&app.test).await, empty);
}

/// Another organization wipes nothing, and each wipe has one entry in the audit log.
pub async fn a_wipe_stays_within_its_tenant_and_is_logged(store: &SharedStore) {
    let app = wipe_scenario(store).await;
    app.fill(Environment::Test).await;
    let test = shown_data(&app.test).await;
    let stranger = wipe_scenario(store).await;
    let caller = stranger.wiper();
    let of = (store.as_ref(), app.live.app.id);
    let refused = run_wipe(of.0, &caller, of.1, origin(WIPED_AT)).await;
    assert_eq!(refusal(refused), Refusal::AppNotFound);
    assert_eq!(shown_data(&app.test).await, test);
    app.wipe().await;
    let reader = Authorized::operator(app.live.writer.organization());
    let log = store.audit_log(&reader, Some(of.1), first_page("50")).await;
    let log = log.expect("the audit log is read").items;
    let entries: Vec<_> = log
        .iter()
        .filter(|entry| entry.action == Action::TestDataWiped)
        .collect();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].environment, Environment::Test);
    assert_eq!(entries[0].target, of.1.to_string());
}
