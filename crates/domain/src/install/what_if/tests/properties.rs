//! Properties that hold for random traffic.

use super::traffic::*;
use crate::access::Environment;
use crate::app::{AttributionRules, FraudPolicy};
use crate::install::tests::at;
use crate::install::what_if::{StoredInstall, WhatIf, WhatIfReport};
use crate::report::Figures;
use proptest::prelude::*;

const DAY: i64 = 24 * HOUR;
const CLICKS_MAX: u8 = 8;

fn any_click(number: u8) -> impl Strategy<Value = SampleClick> {
    (-2 * DAY..3 * DAY, any::<bool>(), any::<bool>()).prop_map(
        move |(seconds, is_advertised, is_near)| SampleClick {
            number,
            seconds,
            is_advertised,
            is_near,
        },
    )
}

fn any_open() -> impl Strategy<Value = SampleOpen> {
    let claims = prop::option::of(0..CLICKS_MAX + 1);
    (0..3 * DAY, claims, any::<bool>(), any::<bool>(), 0..5_i64).prop_map(
        |(seconds, claims, is_advertised, is_near, dollars)| SampleOpen {
            seconds,
            claims,
            is_advertised,
            is_near,
            revenue: dollars * 1_000_000,
        },
    )
}

fn any_rules() -> impl Strategy<Value = AttributionRules> {
    let policy = prop::sample::select(FraudPolicy::ALL.to_vec());
    (1..72_i64, any::<bool>(), 1..24_i64, policy).prop_map(|(hours, is_on, window, fraud)| {
        rules(|rules| {
            rules.click_window_hours = hours;
            rules.probabilistic_android = is_on;
            rules.probabilistic_window_hours = window;
            rules.fraud = fraud;
        })
    })
}

fn any_traffic() -> impl Strategy<Value = (Vec<SampleClick>, Vec<SampleOpen>)> {
    let clicks = (0..CLICKS_MAX).prop_flat_map(|size| (0..size).map(any_click).collect::<Vec<_>>());
    let opens = prop::collection::vec(any_open(), 1..8).prop_map(|mut opens| {
        opens.sort_by_key(|one| one.seconds);
        opens
    });
    (clicks, opens)
}

/// Returns the figures of every campaign, as recorded or under the other rules.
fn counted(report: &WhatIfReport, is_then: bool) -> Vec<(String, String, Figures)> {
    let mut rows: Vec<_> = report
        .campaigns
        .iter()
        .map(|row| {
            let figures = if is_then { row.then } else { row.now };
            (row.network.clone(), row.campaign.clone(), figures.figures)
        })
        .filter(|(.., figures)| !figures.is_zero())
        .collect();
    rows.sort_by(|one, other| (&one.0, &one.1).cmp(&(&other.0, &other.1)));
    rows
}

fn all_installs(figures: &Figures) -> i64 {
    figures.installs + figures.held_installs
}

proptest! {
    #[test]
    fn unchanged_rules_move_nothing((clicks, opens) in any_traffic(), rules in any_rules()) {
        let report = replay(&record(&clicks, &opens, &rules), &rules);
        prop_assert_eq!(moves(&report), Vec::<String>::new());
        prop_assert_eq!(gaps(&report), Vec::new());
        prop_assert_eq!(report.total.now, report.total.then);
    }

    #[test]
    fn a_replay_without_gaps_equals_recording_under_the_rules(
        (clicks, opens) in any_traffic(),
        before in any_rules(),
        tried in any_rules(),
    ) {
        let report = replay(&record(&clicks, &opens, &before), &tried);
        let direct = replay(&record(&clicks, &opens, &tried), &tried);
        if report.gaps.is_empty() {
            prop_assert_eq!(counted(&report, true), counted(&direct, false));
        }
    }

    #[test]
    fn every_install_counts_before_and_after(
        (clicks, opens) in any_traffic(),
        before in any_rules(),
        tried in any_rules(),
    ) {
        let report = replay(&record(&clicks, &opens, &before), &tried);
        let count = i64::try_from(opens.len()).unwrap();
        prop_assert_eq!(all_installs(&report.total.now.figures), count);
        prop_assert_eq!(all_installs(&report.total.then.figures), count);
        let moved: u64 = report.moves.iter().map(|one| one.installs).sum();
        prop_assert_eq!(moved, report.moved);
    }

    #[test]
    fn neither_the_order_nor_the_pages_matter(
        (clicks, opens) in any_traffic(),
        before in any_rules(),
        tried in any_rules(),
        size in 1..4_usize,
    ) {
        let installs = record(&clicks, &opens, &before);
        let whole = replay(&installs, &tried);
        let shuffled: Vec<StoredInstall> = installs.iter().rev().cloned().collect();
        prop_assert_eq!(&replay(&shuffled, &tried), &whole);
        let mut paged = WhatIf::new(Environment::Live, tried, at(BEGIN));
        for page in installs.chunks(size) {
            paged.add(page.to_vec());
        }
        prop_assert_eq!(paged.finish(None), whole);
    }
}
