//! SKAdNetwork and AdAttributionKit postbacks.

use super::fixtures::{
    SharedStore, at, first_page, join_all, new_key, organization, origin, refusal,
};
use super::postback_fixtures::{
    AdvertisedApp, accept, advertised_app, again, arrival, full_arrival, list, stats, total,
    unused_store_id,
};
use crate::{PostbackDimensions, PostbackFilter, PostbackOutcome, PostbackReportQuery};
use tributary_domain::access::{AnalyticsRead, AppsRead, Authorized, Environment, authorize};
use tributary_domain::app::AppChange;
use tributary_domain::refusal::Refusal;
use tributary_domain::skan::CoarseValue;
use tributary_domain::skan::postback::{ConversionType, Protocol, Signature};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::page::PageRequest;
use tributary_domain::vocabulary::revision::Precondition;

/// Every field is stored.
pub async fn a_postback_is_read_as_it_was_stored(store: &SharedStore) {
    let one = advertised_app(store).await;
    let full = full_arrival(one.store_id, 10);
    assert_eq!(accept(store, &full).await, PostbackOutcome::Stored);
    let page = list(store, &one, PostbackFilter::default()).await;
    assert_eq!(page.len(), 1);
    assert_eq!(page[0].parsed, full.parsed);
    assert_eq!(
        (page[0].id, page[0].received_at),
        (full.id, full.received_at)
    );
    assert!(!page[0].conflicting);
}

/// A replay changes nothing, whether it is concurrent or later.
pub async fn a_replay_changes_nothing(store: &SharedStore) {
    let one = advertised_app(store).await;
    let first = arrival(one.store_id, 10);
    let copies = (0..8).map(|second| {
        let copy = again(&first, 10 + second, &first.body);
        store.accept_postback(copy)
    });
    let outcomes = join_all(copies.collect()).await;
    let stored = outcomes
        .into_iter()
        .filter(|one| matches!(one, Ok(PostbackOutcome::Stored)));
    assert_eq!(stored.count(), 1, "one of them is stored");
    let later = again(&first, 90_000, &first.body);
    assert_eq!(accept(store, &later).await, PostbackOutcome::Duplicate);
    assert_eq!(list(store, &one, PostbackFilter::default()).await.len(), 1);
    assert_eq!(total(store, &one).await, (1, 0));
}

/// A postback with the same deduplication key but another conversion value is stored as a conflict
/// and never counts, even when it arrives concurrently. A repeated conflict changes nothing.
pub async fn another_value_is_a_conflict(store: &SharedStore) {
    let one = advertised_app(store).await;
    let first = arrival(one.store_id, 10);
    accept(store, &first).await;
    let others = (0..6).map(|number| {
        let mut other = again(
            &first,
            11,
            &format!("{{\"conversion-value\":{}}}", number / 2),
        );
        other.parsed.postback.fine_value = Some(number / 2);
        store.accept_postback(other)
    });
    let outcomes = join_all(others.collect()).await;
    let stored = outcomes
        .into_iter()
        .filter(|one| matches!(one, Ok(PostbackOutcome::Stored)));
    assert_eq!(stored.count(), 3);
    let all = list(store, &one, PostbackFilter::default()).await;
    assert_eq!(all.len(), 4);
    assert_eq!(all.iter().filter(|one| one.conflicting).count(), 3);
    assert_eq!(total(store, &one).await, (1, 0));
}

/// The postbacks for an install's three windows are separate, and so is the postback for a lost
/// attribution.
pub async fn windows_and_losses_are_separate_postbacks(store: &SharedStore) {
    let one = advertised_app(store).await;
    let first = arrival(one.store_id, 10);
    accept(store, &first).await;
    for (window, did_win) in [(1, true), (2, true), (0, false)] {
        let mut other = again(&first, 11, &format!("{{\"{window}\":{did_win}}}"));
        other.parsed.postback.sequence_index = window;
        other.parsed.postback.did_win = did_win;
        accept(store, &other).await;
    }
    let rows = stats(store, &one, PostbackDimensions::default()).await;
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].figures.values(), [1, 0, 0, 2, 1]);
}

/// Postbacks that fail verification are stored, never count, and do not block genuine postbacks.
pub async fn unverified_postbacks_are_stored_and_not_counted(store: &SharedStore) {
    let one = advertised_app(store).await;
    let genuine = arrival(one.store_id, 20);
    let mut forged = again(&genuine, 10, "{\"forged\":1}");
    forged.parsed.signature = Signature::Invalid;
    let mut unknown = again(&genuine, 11, "{\"forged\":2}");
    unknown.parsed.signature = Signature::Unverifiable;
    accept(store, &forged).await;
    accept(store, &unknown).await;
    assert_eq!(total(store, &one).await, (0, 0));
    accept(store, &genuine).await;
    assert_eq!(total(store, &one).await, (1, 0));
    let by = |signature| PostbackFilter {
        signature: Some(signature),
        ..PostbackFilter::default()
    };
    for signature in [
        Signature::Valid,
        Signature::Invalid,
        Signature::Unverifiable,
    ] {
        let found = list(store, &one, by(signature)).await;
        assert!(found.len() == 1 && found[0].parsed.signature == signature);
    }
    let counted = |counted| PostbackFilter {
        counted: Some(counted),
        ..PostbackFilter::default()
    };
    assert_eq!(list(store, &one, counted(true)).await.len(), 1);
    assert_eq!(list(store, &one, counted(false)).await.len(), 2);
}

/// Test postbacks count while the app accepts test signals, no matter when they arrived.
pub async fn test_postbacks_count_while_enabled(store: &SharedStore) {
    let one = advertised_app(store).await;
    let mut signed = arrival(one.store_id, 10);
    signed.parsed.signature = Signature::Development;
    accept(store, &signed).await;
    let mut marked = arrival(one.store_id, 11);
    marked.parsed.postback.source_app_id = Some(0);
    accept(store, &marked).await;
    accept(store, &arrival(one.store_id, 12)).await;
    let counted = PostbackFilter {
        counted: Some(true),
        ..PostbackFilter::default()
    };
    for (seconds, wanted, expected) in [(20, true, 3), (21, false, 1), (22, true, 3)] {
        let (writer, on) = (&one.writer, Change::Set(wanted));
        store
            .patch_skan(
                writer,
                one.app,
                Change::Keep,
                on,
                Precondition::None,
                origin(seconds),
            )
            .await
            .expect("the switch is set");
        assert_eq!(total(store, &one).await.0, expected);
        let found = list(store, &one, counted.clone()).await;
        assert_eq!(i64::try_from(found.len()), Ok(expected));
    }
}

/// Postbacks without an app wait for the app with their App Store id, and keep their time and
/// order.
pub async fn an_app_gets_its_waiting_postbacks(store: &SharedStore) {
    let id = unused_store_id();
    let first = arrival(id, 10);
    let mut conflict = again(&first, 11, "{\"conversion-value\":63}");
    conflict.parsed.postback.fine_value = Some(63);
    let replay = again(&first, 12, &first.body);
    assert_eq!(accept(store, &first).await, PostbackOutcome::Unclaimed);
    assert_eq!(accept(store, &conflict).await, PostbackOutcome::Unclaimed);
    assert_eq!(accept(store, &replay).await, PostbackOutcome::Duplicate);
    let one = super::postback_fixtures::advertised_app_with_id(store, id).await;
    let all = list(store, &one, PostbackFilter::default()).await;
    assert_eq!(all.len(), 2);
    assert_eq!(
        (all[1].id, all[1].received_at),
        (first.id, first.received_at)
    );
    assert!(all[0].conflicting && !all[1].conflicting);
    assert_eq!(total(store, &one).await, (1, 0));
    assert_eq!(accept(store, &replay).await, PostbackOutcome::Duplicate);
    assert_eq!(
        store.claim_postbacks(10).await.expect("nothing is waiting"),
        0
    );
}

/// An existing app claims its waiting postbacks in several steps.
pub async fn remaining_postbacks_are_claimed_later(store: &SharedStore) {
    let one = advertised_app(store).await;
    let other = unused_store_id();
    for second in 0..520 {
        accept(store, &arrival(other, second)).await;
    }
    let change = AppChange {
        ios_app_store_id: Change::Set(other.to_string()),
        ..AppChange::default()
    };
    store
        .update_app(
            &one.writer,
            one.app,
            change,
            Precondition::None,
            origin(600),
        )
        .await
        .expect("the app gets another id");
    assert_eq!(total(store, &one).await.0, 500, "the limit per transaction");
    assert_eq!(store.claim_postbacks(15).await.expect("claimed"), 15);
    assert_eq!(store.claim_postbacks(15).await.expect("claimed"), 5);
    assert_eq!(total(store, &one).await.0, 520);
}

/// Lists can be filtered, and are paged while postbacks arrive.
pub async fn postbacks_are_listed(store: &SharedStore) {
    let one = advertised_app(store).await;
    for second in 0..7 {
        accept(store, &arrival(one.store_id, second)).await;
    }
    let mut other = full_arrival(one.store_id, 7);
    other.parsed.postback.did_win = false;
    other.parsed.postback.sequence_index = 2;
    other.parsed.postback.conversion_type = ConversionType::ReEngagement;
    accept(store, &other).await;
    let narrowed = [
        PostbackFilter {
            protocol: Some(Protocol::AdAttributionKit),
            ..PostbackFilter::default()
        },
        PostbackFilter {
            ad_network_id: Some("other.adattributionkit".to_owned()),
            ..PostbackFilter::default()
        },
        PostbackFilter {
            source_identifier: Some("77".to_owned()),
            ..PostbackFilter::default()
        },
        PostbackFilter {
            sequence_index: Some(2),
            ..PostbackFilter::default()
        },
        PostbackFilter {
            did_win: Some(false),
            ..PostbackFilter::default()
        },
        PostbackFilter {
            conversion_type: Some(ConversionType::ReEngagement),
            ..PostbackFilter::default()
        },
        PostbackFilter {
            from: Some(at(7)),
            until: Some(at(8)),
            ..PostbackFilter::default()
        },
    ];
    for filter in narrowed {
        let found = list(store, &one, filter.clone()).await;
        assert_eq!(found.len(), 1, "{filter:?}");
        assert_eq!(found[0].id, other.id, "{filter:?}");
    }
    let mut seen = Vec::new();
    let mut before = None;
    loop {
        let request = PageRequest {
            before,
            ..first_page("3")
        };
        let filter = PostbackFilter::default();
        let page = store
            .postbacks(&one.reader(), one.app, filter, request)
            .await;
        let page = page.expect("a page").page;
        seen.extend(page.items.iter().map(|item| item.id));
        accept(store, &arrival(one.store_id, 100)).await;
        before = page.items.last().map(|item| *item.id.as_bytes());
        if !page.has_more {
            break;
        }
    }
    assert_eq!(seen.len(), 8);
    assert!(seen.is_sorted_by(|newer, older| newer > older));
}

/// Figures are grouped by the requested dimensions. Missing values are empty.
pub async fn figures_are_grouped_by_dimensions(store: &SharedStore) {
    let one = advertised_app(store).await;
    let cases = [
        ("5239", Some(63), None),
        ("1239", Some(63), None),
        ("239", None, Some(CoarseValue::High)),
        ("39", None, None),
        ("40", Some(0), None),
    ];
    for (second, (source, fine, coarse)) in (0..).zip(cases) {
        let mut next = arrival(one.store_id, second);
        let postback = &mut next.parsed.postback;
        postback.source_identifier = Some(source.to_owned());
        (postback.fine_value, postback.coarse_value) = (fine, coarse);
        accept(store, &next).await;
    }
    let by_digits = async |digits| {
        let by = PostbackDimensions {
            source_digits: Some(digits),
            ..PostbackDimensions::default()
        };
        let rows = stats(store, &one, by).await;
        rows.into_iter()
            .map(|row| {
                (
                    row.source_identifier.unwrap_or_default(),
                    row.figures.installs,
                )
            })
            .collect::<Vec<_>>()
    };
    let pairs = |rows: &[(&str, i64)]| -> Vec<(String, i64)> {
        rows.iter()
            .map(|(text, count)| ((*text).to_owned(), *count))
            .collect()
    };
    assert_eq!(by_digits(2).await, pairs(&[("39", 4), ("40", 1)]));
    assert_eq!(by_digits(3).await, pairs(&[("", 2), ("239", 3)]));
    assert_eq!(
        by_digits(4).await,
        pairs(&[("", 3), ("1239", 1), ("5239", 1)])
    );
    let by = PostbackDimensions {
        fine_value: true,
        coarse_value: true,
        ..PostbackDimensions::default()
    };
    let values: Vec<_> = stats(store, &one, by)
        .await
        .into_iter()
        .map(|row| {
            (
                row.fine_value,
                row.coarse_value,
                row.figures.installs,
                row.withheld,
            )
        })
        .collect();
    assert_eq!(
        values,
        [
            (None, None, 1, 1),
            (None, Some(CoarseValue::High), 1, 0),
            (Some(0), None, 1, 0),
            (Some(63), None, 2, 0),
        ]
    );
    assert_eq!(total(store, &one).await, (5, 1));
}

/// Periods are reported separately. Postbacks outside of the periods are excluded.
pub async fn figures_are_reported_per_period(store: &SharedStore) {
    let one = advertised_app(store).await;
    // Counts are stored per quarter of an hour. `at(0)` is 800 seconds after the start of one, so
    // the periods below start at -800, 100 and 1,000 seconds.
    for seconds in [0, 99, 100, 999, 90_000] {
        accept(store, &arrival(one.store_id, seconds)).await;
    }
    let query = PostbackReportQuery {
        periods: vec![
            (at(-800), at(100)),
            (at(100), at(1_000)),
            (at(1_000), at(1_900)),
        ],
        group_by: PostbackDimensions {
            ad_network_id: true,
            sequence_index: true,
            protocol: true,
            campaign_id: true,
            ..PostbackDimensions::default()
        },
        ad_network_id: Some("example123.skadnetwork".to_owned()),
        protocol: Some(Protocol::SkAdNetwork),
        rows_max: 100,
    };
    let reader: Authorized<AnalyticsRead> = one.reader().analytics_access();
    let rows = store.postback_stats(&reader, one.app, query.clone()).await;
    let rows: Vec<_> = rows
        .expect("figures")
        .into_iter()
        .map(|row| (row.period, row.sequence_index, row.figures.installs))
        .collect();
    assert_eq!(rows, [(0, Some(0), 2), (1, Some(0), 2)]);
    let other = PostbackReportQuery {
        ad_network_id: Some("other.skadnetwork".to_owned()),
        ..query
    };
    let rows = store.postback_stats(&reader, one.app, other).await;
    assert_eq!(rows.expect("figures").len(), 0);
}

/// Old postbacks are removed. Their counts stay, and a replay is not counted again.
pub async fn old_postbacks_are_removed_and_their_counts_stay(store: &SharedStore) {
    let one = advertised_app(store).await;
    let old = arrival(one.store_id, 10);
    accept(store, &old).await;
    let mut forged = arrival(one.store_id, 11);
    forged.parsed.signature = Signature::Invalid;
    accept(store, &forged).await;
    accept(store, &arrival(one.store_id, 20)).await;
    assert_eq!(store.remove_postbacks(at(20), 1).await.expect("one"), 1);
    assert_eq!(
        store.remove_postbacks(at(20), 5).await.expect("the other"),
        1
    );
    assert_eq!(store.remove_postbacks(at(20), 5).await.expect("none"), 0);
    assert_eq!(list(store, &one, PostbackFilter::default()).await.len(), 1);
    assert_eq!(total(store, &one).await, (2, 0));
    let copy = again(&old, 30, &old.body);
    assert_eq!(accept(store, &copy).await, PostbackOutcome::Duplicate);
    let changed = again(&old, 31, "{\"conversion-value\":1}");
    assert_eq!(accept(store, &changed).await, PostbackOutcome::Stored);
    assert_eq!(
        total(store, &one).await,
        (2, 0),
        "the postback was counted before"
    );
    let unclaimed = arrival(unused_store_id(), 10);
    accept(store, &unclaimed).await;
    assert_eq!(
        store
            .remove_unclaimed_postbacks(at(10), 5)
            .await
            .expect("none"),
        0
    );
    assert_eq!(
        store
            .remove_unclaimed_postbacks(at(11), 5)
            .await
            .expect("one"),
        1
    );
}

/// Other organizations find no postbacks, and neither does a test key.
pub async fn another_organization_finds_no_postback(store: &SharedStore) {
    let one = advertised_app(store).await;
    accept(store, &arrival(one.store_id, 10)).await;
    let stranger = organization(store).await.read_access();
    let filter = PostbackFilter::default();
    let listed = store
        .postbacks(&stranger, one.app, filter.clone(), first_page("5"))
        .await;
    assert_eq!(refusal(listed), Refusal::AppNotFound);
    let query = super::postback_fixtures::query(PostbackDimensions::default());
    let counted = store
        .postback_stats(&stranger.analytics_access(), one.app, query.clone())
        .await;
    assert_eq!(refusal(counted), Refusal::AppNotFound);
    let mut key = new_key(one.writer.organization()).key;
    key.environment = Environment::Test;
    let in_test: Authorized<AppsRead> =
        authorize(&key, super::fixtures::CLIENT).expect("a test key reads apps");
    let listed = store
        .postbacks(&in_test, one.app, filter, first_page("5"))
        .await;
    assert_eq!(listed.expect("an empty list").page.items.len(), 0);
    let counted = store
        .postback_stats(&in_test.analytics_access(), one.app, query)
        .await;
    assert_eq!(counted.expect("no figures").len(), 0);
    let other: AdvertisedApp = advertised_app(store).await;
    assert_eq!(
        list(store, &other, PostbackFilter::default()).await.len(),
        0
    );
    assert_eq!(total(store, &other).await, (0, 0));
}
