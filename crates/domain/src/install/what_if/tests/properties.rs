//! Properties that hold for random traffic.

use super::traffic::*;
use crate::access::Environment;
use crate::app::{AttributionRules, FraudPolicy};
use crate::install::tests::at;
use crate::install::what_if::{StoredInstall, WhatIf, WhatIfReport};
use crate::report::Figures;
use proptest::prelude::*;
use std::collections::BTreeMap;

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
            late: None,
        },
    )
}

/// Any traffic in which better evidence may arrive up to three days after a first open.
fn any_late_traffic() -> impl Strategy<Value = (Vec<SampleClick>, Vec<SampleOpen>)> {
    let late = (1..3 * DAY, prop::option::of(0..CLICKS_MAX + 1))
        .prop_map(|(seconds, claims)| SampleLate { seconds, claims });
    let late = prop::collection::vec(prop::option::of(late), 8);
    (any_traffic(), late).prop_map(|((clicks, mut opens), late)| {
        for (open, late) in opens.iter_mut().zip(late) {
            open.late = late;
        }
        (clicks, opens)
    })
}

/// Returns, for each network and campaign, how many more installs it has than now according to the
/// figures, and according to the moves. Held installs count with a place of their own.
fn differences(report: &WhatIfReport) -> [BTreeMap<(String, String, bool), i64>; 2] {
    let (mut figures, mut moves) = (BTreeMap::new(), BTreeMap::new());
    for row in &report.campaigns {
        let (now, then) = (row.now.figures, row.then.figures);
        let differences = [
            (false, then.installs - now.installs),
            (true, then.held_installs - now.held_installs),
        ];
        for (is_held, difference) in differences {
            figures.insert(
                (row.network.clone(), row.campaign.clone(), is_held),
                difference,
            );
        }
    }
    for one in &report.moves {
        for (place, sign) in [(&one.from, -1), (&one.to, 1)] {
            let is_held = place.hold == Some(crate::attribution::HoldState::Held);
            let key = (
                place.network_name().to_owned(),
                place.campaign.clone(),
                is_held,
            );
            *moves.entry(key).or_default() += sign * i64::try_from(one.installs).unwrap();
        }
    }
    for differences in [&mut figures, &mut moves] {
        differences.retain(|_, difference| *difference != 0);
    }
    [figures, moves]
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
        prop_assert_eq!(paged.finish(None, None), whole);
    }

    #[test]
    fn unchanged_rules_move_nothing_after_late_evidence(
        (clicks, opens) in any_late_traffic(),
        rules in any_rules(),
    ) {
        let report = replay(&record(&clicks, &opens, &rules), &rules);
        prop_assert_eq!(moves(&report), Vec::<String>::new());
        prop_assert_eq!(report.total.now, report.total.then);
        // Two devices may send one click, and the second one may send it first.
        let is_expected = |(gap, _): &(&str, u64)| *gap == "not_reproduced";
        prop_assert!(gaps(&report).iter().all(is_expected), "{:?}", gaps(&report));
    }

    #[test]
    fn moves_add_up_to_the_difference_of_the_figures(
        (clicks, opens) in any_late_traffic(),
        before in any_rules(),
        tried in any_rules(),
    ) {
        let report = replay(&record(&clicks, &opens, &before), &tried);
        let [figures, moves] = differences(&report);
        prop_assert_eq!(figures, moves);
        let net = |figures: &Figures| figures.revenue_micros + figures.held_revenue_micros;
        let (now, then) = (report.total.now.figures, report.total.then.figures);
        prop_assert_eq!(net(&now), net(&then), "no revenue is lost");
    }

    #[test]
    fn late_evidence_counts_within_the_tried_window(
        after in prop::collection::vec((1..3 * DAY, any::<bool>()), 1..8),
        before in 1..72_i64,
        tried in 1..72_i64,
    ) {
        // Each device has a click that no other device claims, so that their order does not matter.
        let (mut clicks, mut opens) = (Vec::new(), Vec::new());
        for (number, (seconds, is_apple)) in (0_u8..).zip(after) {
            clicks.push(click(number, i64::from(number)));
            let late = SampleLate { seconds, claims: (!is_apple).then_some(number) };
            opens.push(SampleOpen { late: Some(late), ..open(HOUR + i64::from(number)) });
        }
        let with_window = |hours| rules(|rules| {
            rules.click_window_hours = hours;
            rules.probabilistic_android = false;
        });
        let report = replay(&record(&clicks, &opens, &with_window(before)), &with_window(tried));
        let direct = replay(&record(&clicks, &opens, &with_window(tried)), &with_window(tried));
        if report.gaps.is_empty() {
            prop_assert_eq!(counted(&report, true), counted(&direct, false));
        }
    }
}
