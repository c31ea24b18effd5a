//! Which values are kept must depend on nothing but the day's figures and the known values.

use super::super::cohort::{CohortCredit, CohortFigures, CohortKey, CohortRows};
use super::super::{NameKey, OTHER, PivotKey};
use super::*;
use crate::event::EventSource;
use crate::vocabulary::time::Timestamp;
use proptest::prelude::*;

const APP: AppId = AppId::from_bytes([1; 16]);

/// One click or event.
#[derive(Debug, Clone)]
enum Step {
    Click(String, u8),
    Install(String, u8),
    Event(String),
    Learn(String),
}

/// The stored state, as the merges maintain it.
#[derive(Debug, Clone, Default, PartialEq)]
struct Stored {
    rows: RollupRows,
    known: BTreeSet<KnownValue>,
}

fn day() -> Day {
    Day::of(Timestamp::from_millis(0))
}

fn at(quarter: u8) -> BucketKey {
    let moment = Timestamp::from_millis(i64::from(quarter) * 15 * 60_000);
    BucketKey::of(APP, Environment::Live, moment)
}

fn credit(campaign: &str, quarter: u8) -> CreditKey {
    CreditKey {
        at: at(quarter),
        network: "network_a",
        link: None,
        campaign: campaign.to_owned(),
        adset: String::new(),
        ad: format!("ad {}", quarter % 2),
    }
}

fn pivot(campaign: &str, quarter: u8) -> PivotKey {
    PivotKey {
        at: at(quarter),
        network: "network_a",
        campaign: campaign.to_owned(),
        country: "DE".to_owned(),
        platform: if quarter.is_multiple_of(3) { "ios" } else { "" },
    }
}

/// Returns the counts for a step.
fn counted(step: &Step) -> (Increments, CohortRows) {
    let (mut increments, mut cohorts) = (Increments::default(), CohortRows::default());
    let (clicks, events) = match step {
        Step::Click(..) => (1, 0),
        _ => (0, 1),
    };
    let figures = Figures {
        clicks,
        events,
        ..Figures::default()
    };
    match step {
        Step::Click(campaign, quarter) => {
            increments
                .credits
                .insert(credit(campaign, *quarter), figures);
            increments.pivots.insert(pivot(campaign, *quarter), figures);
        }
        Step::Install(campaign, quarter) => {
            increments
                .credits
                .insert(credit(campaign, *quarter), figures);
            increments.pivots.insert(pivot(campaign, *quarter), figures);
            let key = CohortKey {
                at: at(*quarter),
                credit: CohortCredit {
                    network: "network_a",
                    link: None,
                    campaign: campaign.clone(),
                },
                age: 0,
            };
            let figures = CohortFigures {
                devices: 1,
                ..CohortFigures::default()
            };
            cohorts.credits.insert(key, figures);
        }
        Step::Event(name) => {
            let name = NameKey {
                at: at(3),
                source: EventSource::Sdk,
                name: name.clone(),
            };
            increments.names.insert(name, figures);
        }
        Step::Learn(value) => {
            increments.known.insert(KnownValue {
                app: APP,
                kind: ValueKind::Campaign,
                value: value.clone(),
            });
        }
    }
    (increments, cohorts)
}

fn sum(steps: &[Step]) -> (Increments, CohortRows) {
    let (mut increments, mut cohorts) = (Increments::default(), CohortRows::default());
    for step in steps {
        let (one, of_cohorts) = counted(step);
        increments.merge(one);
        cohorts.merge(of_cohorts);
    }
    (increments, cohorts)
}

/// Merges steps the way the worker does.
fn merge(stored: &mut Stored, steps: &[Step]) {
    let (increments, cohorts) = sum(steps);
    stored.known.extend(increments.known.clone());
    let mut values = DayValues::new(APP, Environment::Live, day());
    values.add_stored(&stored.rows);
    values.add_increments(&increments);
    let before = values.stored_decisions();
    let after = values.decide(&stored.known);
    let changed = values.changed(&before, &after);
    let mut moving = stored.rows.clone();
    let is_changed = |campaign: &String| changed.campaigns.contains(campaign);
    moving.credits.retain(|key, _| is_changed(&key.campaign));
    moving.pivots.retain(|key, _| is_changed(&key.campaign));
    let of_cohorts = &mut moving.cohorts.credits;
    of_cohorts.retain(|key, _| is_changed(&key.credit.campaign));
    moving
        .names
        .retain(|key, _| changed.names.contains(&key.name));
    stored.rows.add(&moving.moved(&before, &after), 1);
    stored
        .rows
        .add(&RollupRows::of(&increments, &after, &cohorts), 1);
}

/// Counts everything at once, as a rebuild does.
fn rebuild(steps: &[Step]) -> RollupRows {
    let (increments, cohorts) = sum(steps);
    let mut values = DayValues::new(APP, Environment::Live, day());
    values.add_increments(&increments);
    let decisions = values.decide(&increments.known);
    RollupRows::of(&increments, &decisions, &cohorts)
}

fn merged(steps: &[Step], size: usize) -> Stored {
    let mut stored = Stored::default();
    for part in steps.chunks(size.max(1)) {
        merge(&mut stored, part);
    }
    stored
}

/// Returns the campaigns with rows of their own.
fn campaigns(rows: &RollupRows) -> BTreeSet<&str> {
    let rows = rows.campaigns.keys();
    rows.map(|key| key.campaign.as_str()).collect()
}

fn invented(count: usize) -> Vec<Step> {
    (0..count)
        .map(|number| Step::Click(format!("!invented {number}"), 1))
        .collect()
}

#[test]
fn real_campaigns_keep_their_rows_wherever_the_invented_ones_come() {
    let real = [
        Step::Click("learned".to_owned(), 4),
        Step::Click("converting".to_owned(), 5),
        Step::Install("converting".to_owned(), 6),
        Step::Click("popular".to_owned(), 7),
        Step::Click("popular".to_owned(), 8),
        Step::Learn("learned".to_owned()),
    ];
    let attack = invented(2_000);
    for position in [0, 3, 6] {
        let mut steps = real.to_vec();
        steps.splice(position..position, attack.clone());
        let stored = merged(&steps, 50);
        assert_eq!(stored.rows, rebuild(&steps), "at {position}");
        let kept = campaigns(&stored.rows);
        assert_eq!(kept.len(), CAMPAIGNS_PER_DAY_MAX + 1);
        for campaign in ["learned", "converting", "popular", OTHER] {
            assert!(kept.contains(campaign), "{campaign} at {position}");
        }
    }
}

#[test]
fn a_value_moves_with_all_its_figures() {
    let mut steps = vec![Step::Install("~late".to_owned(), 9)];
    steps.extend((0..300).map(|number| Step::Install(format!("c{number}"), 2)));
    let mut stored = merged(&steps, 40);
    assert!(!campaigns(&stored.rows).contains("~late"));
    let learned = Step::Learn("~late".to_owned());
    merge(&mut stored, std::slice::from_ref(&learned));
    steps.push(learned);
    assert_eq!(stored.rows, rebuild(&steps));
    assert!(campaigns(&stored.rows).contains("~late"));
    let cohorts = stored.rows.cohorts.credits.keys();
    let cohort = cohorts.filter(|key| key.credit.campaign == "~late");
    assert_eq!(cohort.count(), 3, "one row per grain and no details");
}

#[test]
fn details_are_bounded() {
    let steps = invented(CLICK_DETAILS_PER_DAY_MAX + 2_000);
    let mut stored = merged(&steps, 1_000);
    let details = |rows: &RollupRows| {
        let details = rows.credits.keys();
        let details = details.filter(|key| key.at.grain == Grain::FoldedDay);
        details.count()
    };
    // The limit is checked before each merge.
    let bound = CLICK_DETAILS_PER_DAY_MAX..CLICK_DETAILS_PER_DAY_MAX + 1_000;
    assert!(bound.contains(&details(&stored.rows)));
    let clicks: i64 = stored
        .rows
        .networks
        .iter()
        .filter(|(key, _)| key.at.grain == Grain::Day)
        .map(|(_, figures)| figures.clicks)
        .sum();
    assert_eq!(clicks, 12_000);
    // A campaign that converts beyond the bound is kept nevertheless.
    merge(&mut stored, &[Step::Install("real".to_owned(), 7)]);
    assert!(campaigns(&stored.rows).contains("real"));
}

fn any_step() -> impl Strategy<Value = Step> {
    let campaign = (0_u16..260).prop_map(|number| format!("c{number}"));
    prop_oneof![
        8 => (campaign.clone(), 0_u8..96).prop_map(|(one, quarter)| Step::Click(one, quarter)),
        3 => (campaign.clone(), 0_u8..96).prop_map(|(one, quarter)| Step::Install(one, quarter)),
        6 => (0_u16..5_000).prop_map(|number| Step::Event(format!("name {number}"))),
        1 => campaign.prop_map(Step::Learn),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn maintained_rows_equal_rebuilt_ones_in_any_order(
        steps in prop::collection::vec(any_step(), 1_000..1_100).prop_shuffle(),
        size in 1_usize..400,
        seed in any::<prop::sample::Index>(),
    ) {
        let expected = rebuild(&steps);
        prop_assert_eq!(&merged(&steps, size.max(90)).rows, &expected);
        let mut rotated = steps.clone();
        rotated.rotate_left(seed.index(steps.len()));
        rotated.reverse();
        prop_assert_eq!(&merged(&rotated, 500).rows, &expected);
        let totals = |rows: &RollupRows| {
            let day = rows.credits.iter().filter(|(key, _)| key.at.grain == Grain::Day);
            day.map(|(_, figures)| figures.clicks + figures.events).sum::<i64>()
        };
        let counted = steps.iter().filter(|step| matches!(step, Step::Click(..) | Step::Install(..)));
        prop_assert_eq!(totals(&expected), i64::try_from(counted.count()).unwrap());
    }
}
