//! Which installs move.

use super::traffic::*;
use crate::app::FraudPolicy;
use crate::install::what_if::{WHAT_IF_EXAMPLES_MAX, WHAT_IF_MOVES_MAX, WhatIfReport, WhatIfRow};
use crate::integration::Network;
use crate::report::{CostSum, Figures, OTHER, StatsRow};
use crate::vocabulary::day::Day;
use rstest::rstest;

/// A click on a link of `network_b` with an id that the device sends ten hours later.
fn claimed() -> (Vec<SampleClick>, Vec<SampleOpen>) {
    let open = SampleOpen {
        claims: Some(1),
        ..open(10 * HOUR)
    };
    (vec![click(1, 0)], vec![open])
}

#[rstest]
#[case::unchanged(168, &[])]
#[case::long_enough(10, &[])]
#[case::too_short(9, &["network_b campaign-1 > organic: 1"])]
fn a_shorter_click_window_loses_clicks(#[case] hours: i64, #[case] expected: &[&str]) {
    let (clicks, opens) = claimed();
    let installs = record(&clicks, &opens, &rules(|_| ()));
    let tried = rules(|rules| {
        rules.click_window_hours = hours;
        rules.probabilistic_android = false;
    });
    let report = replay(&installs, &tried);
    assert_eq!(moves(&report), expected);
    assert!(report.gaps.is_empty());
}

#[test]
fn a_longer_click_window_wins_clicks() {
    let (clicks, opens) = claimed();
    let short = rules(|rules| rules.click_window_hours = 5);
    let installs = record(&clicks, &opens, &short);
    let report = replay(&installs, &rules(|_| ()));
    assert_eq!(moves(&report), ["organic > network_b campaign-1: 1"]);
    let example = &report.moves[0].examples[0];
    assert_eq!(example.device.as_str(), "device-0");
    assert!(example.reason.as_ref().unwrap().contains("10 hours"));
}

#[rstest]
#[case::unchanged(168, &[], &[])]
#[case::long_enough(41, &[], &[])]
#[case::too_short(39, &["apple_ads apple > organic: 1"], &[])]
#[case::far_too_short(1, &["apple_ads apple > organic: 1"], &[])]
fn a_shorter_click_window_loses_ads_that_became_known_after_it(
    #[case] hours: i64,
    #[case] expected: &[&str],
    #[case] missing: &[(&'static str, u64)],
) {
    let opens = [SampleOpen {
        late: Some(SampleLate {
            seconds: 40 * HOUR,
            claims: None,
        }),
        ..open(10 * HOUR)
    }];
    let installs = record(&[], &opens, &rules(|_| ()));
    let report = replay(&installs, &rules(|rules| rules.click_window_hours = hours));
    assert_eq!(moves(&report), expected);
    assert_eq!(gaps(&report), missing);
    // Recorded under the shorter window, the ad is not stored, so a longer one cannot be tried.
    let short = rules(|rules| rules.click_window_hours = hours);
    let back = replay(&record(&[], &opens, &short), &rules(|_| ()));
    let is_lost = !expected.is_empty();
    assert_eq!(gaps(&back), [("late_evidence", 1)][..usize::from(is_lost)]);
    assert_eq!(back.moved, 0);
}

#[rstest]
#[case::long_enough(31, &[], &[])]
#[case::too_short(29, &["network_b campaign-1 > network_a campaign-3: 1"], &[])]
#[case::shorter_than_storing_may_take(20, &[], &[("late_evidence", 1)])]
fn a_shorter_click_window_leaves_the_first_match(
    #[case] hours: i64,
    #[case] expected: &[&str],
    #[case] missing: &[(&'static str, u64)],
) {
    // A probabilistic match, which a click id replaced 30 hours later, or 22 hours later.
    let clicks = [
        SampleClick {
            is_near: true,
            ..click(3, 9 * HOUR)
        },
        click(1, 0),
    ];
    let seconds = if hours < 24 { 22 } else { 30 } * HOUR;
    let opens = [SampleOpen {
        is_near: true,
        late: Some(SampleLate {
            seconds,
            claims: Some(1),
        }),
        ..open(10 * HOUR)
    }];
    let installs = record(&clicks, &opens, &rules(|_| ()));
    let report = replay(&installs, &rules(|rules| rules.click_window_hours = hours));
    assert_eq!(moves(&report), expected);
    assert_eq!(gaps(&report), missing);
}

#[rstest]
#[case::off(false, 24, &["network_b campaign-1 > organic: 1"])]
#[case::shorter(true, 1, &["network_b campaign-1 > organic: 1"])]
#[case::long_enough(true, 2, &[])]
fn probabilistic_matches_follow_their_switch_and_window(
    #[case] is_on: bool,
    #[case] hours: i64,
    #[case] expected: &[&str],
) {
    let clicks = [SampleClick {
        is_near: true,
        ..click(1, 0)
    }];
    let opens = [SampleOpen {
        is_near: true,
        ..open(2 * HOUR)
    }];
    let installs = record(&clicks, &opens, &rules(|_| ()));
    let tried = rules(|rules| {
        rules.probabilistic_android = is_on;
        rules.probabilistic_window_hours = hours;
    });
    assert_eq!(moves(&replay(&installs, &tried)), expected);
    // The other direction: recorded under the narrower rules, and tried under the wider ones.
    let installs = record(&clicks, &opens, &tried);
    let back = replay(&installs, &rules(|_| ()));
    assert_eq!(back.moved, expected.len() as u64);
}

#[rstest]
#[case::flagged(FraudPolicy::Flag, &[])]
#[case::held(FraudPolicy::Hold, &["network_b campaign-1 > network_b campaign-1 held: 1"])]
fn a_policy_holds_flagged_installs(#[case] policy: FraudPolicy, #[case] expected: &[&str]) {
    // The first open comes too soon after the click.
    let opens = [SampleOpen {
        claims: Some(1),
        ..open(5)
    }];
    let installs = record(&[click(1, 0)], &opens, &rules(|_| ()));
    let report = replay(&installs, &rules(|rules| rules.fraud = policy));
    assert_eq!(moves(&report), expected);
    let (now, then) = (report.total.now.figures, report.total.then.figures);
    let held = i64::from(policy == FraudPolicy::Hold);
    assert_eq!((now.installs, now.held_installs), (1, 0));
    assert_eq!((then.installs, then.held_installs), (1 - held, held));
    assert_eq!(then.revenue_micros + then.held_revenue_micros, 1_000_000);
}

#[test]
fn a_lost_click_goes_to_a_later_install() {
    // The first device matches the click by its address, so the second one, which sends the click's
    // id, comes too late.
    let clicks = [SampleClick {
        is_near: true,
        ..click(1, 0)
    }];
    let opens = [
        SampleOpen {
            is_near: true,
            ..open(2 * HOUR)
        },
        SampleOpen {
            claims: Some(1),
            ..open(3 * HOUR)
        },
    ];
    let installs = record(&clicks, &opens, &rules(|_| ()));
    let off = rules(|rules| rules.probabilistic_android = false);
    let expected = [
        "network_b campaign-1 > organic: 1",
        "organic > network_b campaign-1: 1",
    ];
    assert_eq!(moves(&replay(&installs, &off)), expected);
    // An install before the period keeps its click.
    let mut later = super::super::WhatIf::new(
        crate::access::Environment::Live,
        off,
        crate::install::tests::at(3 * HOUR),
    );
    later.add(installs[1..].to_vec());
    assert_eq!(later.finish(None, None).moved, 0);
}

/// Replays two installs, with costs and the revenue that the reports show.
fn report_with_costs() -> WhatIfReport {
    let (clicks, mut opens) = claimed();
    opens.push(open(11 * HOUR));
    let installs = record(&clicks, &opens, &rules(|_| ()));
    let tried = rules(|rules| {
        rules.click_window_hours = 1;
        rules.probabilistic_android = false;
    });
    let mut what_if = super::super::WhatIf::new(
        crate::access::Environment::Live,
        tried,
        crate::install::tests::at(BEGIN),
    );
    what_if.add(installs);
    let cost = |network: &str, campaign: &str| CostSum {
        day: Day::from_days(0),
        network: network.to_owned(),
        campaign: campaign.to_owned(),
        usd_micros: 2_000_000,
        origin: crate::report::cost::CostOrigin::Manual,
    };
    let reported = [
        (["network_b", "campaign-1"], 9),
        (["network_b", "campaign-2"], 3),
        (["network_d", OTHER], 5),
        (["organic", ""], 7),
        (["", ""], 1),
    ];
    let reported = reported.map(|(values, usd)| StatsRow {
        period: 0,
        values: values.map(str::to_owned).to_vec(),
        figures: Figures {
            revenue_micros: usd * 1_000_000,
            ..Figures::default()
        },
    });
    let costs = vec![
        cost("network_b", "campaign-1"),
        cost("network_b", "campaign-1"),
        cost("network_c", ""),
    ];
    what_if.finish(Some(costs), Some(&reported))
}

#[test]
fn costs_stay_and_ratios_follow_the_installs() {
    let report = report_with_costs();
    let row = |network: &str| {
        let found = report.networks.iter().find(|row| row.network == network);
        found.unwrap().clone()
    };
    let paid = row(Network::B.as_str());
    assert_eq!(
        (paid.now.cost, paid.then.cost),
        (Some(4_000_000), Some(4_000_000))
    );
    assert_eq!(paid.now.cpi().unwrap().micros(), 4_000_000);
    assert_eq!(paid.now.roas().unwrap().micros(), 250_000);
    assert_eq!(paid.then.cpi(), None);
    assert_eq!(paid.then.roas().unwrap().micros(), 0);
    assert_eq!(row("network_c").now.cost, Some(2_000_000));
    let organic = row("organic");
    assert_eq!(organic.then.figures.organic_installs, 2);
    assert_eq!(report.total.then.cost, Some(6_000_000));
    // One payment of a dollar moves from the network to organic.
    let nets = |row: &WhatIfRow| {
        [row.period_net, row.period_net_then()].map(|net| net.unwrap() / 1_000_000)
    };
    assert_eq!(nets(&paid), [12, 11]);
    assert_eq!(
        [paid.period_roas(), paid.period_roas_then()].map(|roas| roas.unwrap().micros()),
        [3_000_000, 2_750_000]
    );
    assert_eq!(nets(&organic), [7, 8]);
    assert_eq!(nets(&row("network_c")), [0, 0]);
    assert_eq!(
        nets(&row("network_d")),
        [5, 5],
        "it has no installs in the period"
    );
    assert_eq!(nets(&report.paid), [17, 16]);
    assert_eq!(
        nets(&report.total),
        [25, 25],
        "including what has no credit"
    );
    assert_eq!(report.paid.now.cost, report.total.now.cost);
    let campaign = report
        .campaigns
        .iter()
        .find(|row| row.campaign == "campaign-1");
    assert_eq!(nets(campaign.unwrap()), [9, 8]);
    let names: Vec<_> = report
        .campaigns
        .iter()
        .map(|row| row.campaign_name.as_deref())
        .collect();
    assert!(names.contains(&Some("Campaign 1")));
}

#[test]
fn examples_and_moves_are_limited() {
    let (clicks, opens): (Vec<_>, Vec<_>) = (0..20)
        .map(|number| {
            let seconds = i64::from(number) * 60;
            let open = SampleOpen {
                claims: Some(number),
                ..open(seconds + 2 * HOUR)
            };
            (click(number, seconds), open)
        })
        .unzip();
    let installs = record(&clicks, &opens, &rules(|_| ()));
    let tried = rules(|rules| {
        rules.click_window_hours = 1;
        rules.probabilistic_android = false;
    });
    let report = replay(&installs, &tried);
    assert_eq!(report.moved, 20);
    assert!(
        report
            .moves
            .iter()
            .all(|one| one.examples.len() <= WHAT_IF_EXAMPLES_MAX)
    );
    assert!(report.moves.len() <= WHAT_IF_MOVES_MAX && !report.has_more_moves);
    let counts: Vec<_> = report.moves.iter().map(|one| one.installs).collect();
    assert!(counts.iter().rev().is_sorted(), "{counts:?}");
}
