//! Filling the pivots with clicks and events that were recorded before the pivots existed.
//!
//! A step counts the latest span that is not filled, and stores the difference to what is counted
//! there already as increments. Everything else only adds to the stored figures, so the difference
//! stays right until it is stored, and clicks and events count as they arrive meanwhile.

use super::{
    DayValues, Grain, Increments, OTHER, Period, PivotKey, RollupRows, cardinality_cap::CappedValue,
};
use crate::access::Environment;
use crate::vocabulary::day::Day;
use crate::vocabulary::id::AppId;
use crate::vocabulary::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of clicks and events in a step, unless a quarter hour has more. Counting and
/// merging so many takes about a second, and other writers wait for the merge.
const STEP_ROWS_MAX: i64 = 10_000;

/// How far the pivots of an app go back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PivotHistory {
    /// The pivots contain every event from this time on.
    pub complete_from: Timestamp,
    /// Number that changes with every step and every rebuild.
    pub version: i64,
}

impl PivotHistory {
    /// Returns the span of the next step: the day, the hour or the quarter hour of the `latest`
    /// figures that are not filled. `figures` are the app's figures by network on that day.
    pub fn next_span(&self, latest: Timestamp, figures: &RollupRows) -> Period {
        let rows = |grain: Grain| -> i64 {
            let begin = grain.bucket_start(latest);
            let networks = figures.networks.iter();
            networks
                .filter(|(key, _)| key.at.grain == grain && key.at.bucket.begins_at() == begin)
                .map(|(_, figures)| figures.clicks.saturating_add(figures.events))
                .fold(0, i64::saturating_add)
        };
        let grain = [Grain::Day, Grain::Hour]
            .into_iter()
            .find(|grain| rows(*grain) <= STEP_ROWS_MAX)
            .unwrap_or(Grain::Quarter);
        let end_of_day = Day::of(latest).following().begins_at();
        let until = self.complete_from.min(end_of_day);
        (grain.bucket_start(latest), until)
    }
}

/// Facts about a span, for one app and environment.
#[derive(Debug, Clone, Copy)]
pub struct PivotFacts<'a> {
    /// The clicks and events of the span.
    pub counted: &'a Increments,
    /// The stored pivots of the span by quarter hour, and the figures by credit of its day.
    pub stored: &'a RollupRows,
    /// The app's increments that are not merged yet.
    pub unmerged: &'a Increments,
}

impl PivotFacts<'_> {
    /// Returns the increments that complete the pivots of a span. Retention deletes clicks, so the
    /// number of clicks never decreases. A campaign that the day did not keep, not even as a detail,
    /// counts under `(other)`, as in the other tables.
    pub fn correction(&self, scope: (AppId, Environment), span: Period) -> Increments {
        let (app, environment) = scope;
        let mut values = DayValues::new(app, environment, Day::of(span.0));
        values.add_stored(self.stored);
        let mut present = self.stored.unfold(&values.stored_decisions()).0;
        present.merge(Increments {
            pivots: self.unmerged.pivots.clone(),
            ..Increments::default()
        });
        let is_included = |key: &PivotKey| {
            let begin = key.at.bucket.begins_at();
            (key.at.app, key.at.environment) == scope && span.0 <= begin && begin < span.1
        };
        present.pivots.retain(|key, _| is_included(key));
        let campaigns = self.kept_campaigns();
        let mut counted: BTreeMap<PivotKey, _> = BTreeMap::new();
        for (key, figures) in &self.counted.pivots {
            if !is_included(key) {
                continue;
            }
            let mut key = key.clone();
            let value = CappedValue::campaign(&key.at, &key.campaign);
            if value.is_some() && !campaigns.contains(key.campaign.as_str()) {
                OTHER.clone_into(&mut key.campaign);
            }
            let sum: &mut super::Figures = counted.entry(key).or_default();
            sum.add(figures, 1);
        }
        for (key, figures) in present.pivots {
            let missing = counted.entry(key).or_default();
            let clicks = missing.clicks.saturating_sub(figures.clicks).max(0);
            missing.add(&figures, -1);
            missing.clicks = clicks;
        }
        counted.retain(|_, missing| !missing.is_zero());
        Increments {
            pivots: counted,
            ..Increments::default()
        }
    }

    fn kept_campaigns(&self) -> BTreeSet<&str> {
        let stored = self.stored.credits.keys();
        let unmerged = self.unmerged.credits.keys();
        stored
            .chain(unmerged)
            .map(|key| key.campaign.as_str())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BucketKey, CreditKey, Figures, NetworkKey};
    use super::*;
    use rstest::rstest;

    const APP: AppId = AppId::from_bytes([1; 16]);
    const HOUR: i64 = 3_600_000;
    const DAY: i64 = 24 * HOUR;
    const SCOPE: (AppId, Environment) = (APP, Environment::Live);

    fn at(millis: i64) -> BucketKey {
        BucketKey::of(APP, Environment::Live, Timestamp::from_millis(millis))
    }

    #[rstest]
    #[case::a_quiet_day(9_000, 3 * DAY, (DAY, 2 * DAY))]
    #[case::a_day_that_is_filled_in_part(9_000, DAY + 5 * HOUR, (DAY, DAY + 5 * HOUR))]
    #[case::a_busy_day(10_001, 3 * DAY, (DAY + HOUR, 2 * DAY))]
    #[case::a_busy_hour(60_000, DAY + 2 * HOUR, (DAY + HOUR + HOUR / 2, DAY + 2 * HOUR))]
    fn a_step_is_as_long_as_its_figures_allow(
        #[case] events: i64,
        #[case] complete_from: i64,
        #[case] expected: (i64, i64),
    ) {
        let latest = DAY + HOUR + HOUR / 2;
        let mut figures = RollupRows::default();
        for (grain, events) in [(Grain::Day, events), (Grain::Hour, events / 4)] {
            for (network, events) in [("", events / 2), ("other", events - events / 2)] {
                let at = at(latest).within(grain);
                let counted = Figures {
                    events,
                    ..Figures::default()
                };
                figures.networks.insert(NetworkKey { at, network }, counted);
            }
        }
        let history = PivotHistory {
            complete_from: Timestamp::from_millis(complete_from),
            version: 1,
        };
        let span = history.next_span(Timestamp::from_millis(latest), &figures);
        assert_eq!((span.0.as_millis(), span.1.as_millis()), expected);
    }

    fn pivot(campaign: &str, country: &str) -> PivotKey {
        PivotKey {
            at: at(DAY),
            network: "network_a",
            campaign: campaign.to_owned(),
            country: country.to_owned(),
            platform: "ios",
        }
    }

    fn figures(clicks: i64, events: i64) -> Figures {
        Figures {
            clicks,
            events,
            ..Figures::default()
        }
    }

    fn kept(campaign: &str, grain: Grain) -> (CreditKey, Figures) {
        let key = CreditKey {
            at: at(DAY).within(grain),
            network: "network_a",
            link: None,
            campaign: campaign.to_owned(),
            adset: String::new(),
            ad: String::new(),
        };
        (key, figures(1, 1))
    }

    fn increments(pivots: &[(PivotKey, Figures)]) -> Increments {
        Increments {
            pivots: pivots.iter().cloned().collect(),
            ..Increments::default()
        }
    }

    /// Returns the correction as campaign, country, clicks and events.
    fn correct(
        counted: &[(PivotKey, Figures)],
        stored: &[(PivotKey, Figures)],
        unmerged: &[(PivotKey, Figures)],
    ) -> Vec<(String, String, i64, i64)> {
        let stored = RollupRows {
            pivots: stored.iter().cloned().collect(),
            credits: [kept("own", Grain::Day), kept("folded", Grain::FoldedDay)].into(),
            ..RollupRows::default()
        };
        let facts = PivotFacts {
            counted: &increments(counted),
            stored: &stored,
            unmerged: &increments(unmerged),
        };
        let span = (
            Timestamp::from_millis(DAY),
            Timestamp::from_millis(DAY + HOUR),
        );
        let pivots = facts.correction(SCOPE, span).pivots.into_iter();
        pivots
            .map(|(key, figures)| (key.campaign, key.country, figures.clicks, figures.events))
            .collect()
    }

    fn row(campaign: &str, clicks: i64, events: i64) -> (String, String, i64, i64) {
        (campaign.to_owned(), "DE".to_owned(), clicks, events)
    }

    #[test]
    fn a_correction_is_the_difference_to_what_is_counted() {
        let own = |clicks, events| (pivot("own", "DE"), figures(clicks, events));
        assert_eq!(correct(&[own(5, 3)], &[], &[]), [row("own", 5, 3)]);
        let counted = correct(&[own(5, 3)], &[own(1, 1)], &[own(1, 1)]);
        assert_eq!(counted, [row("own", 3, 1)]);
        assert_eq!(correct(&[own(5, 3)], &[own(5, 3)], &[]), []);
        // An event moved away after the pivots began to count.
        assert_eq!(correct(&[], &[own(0, -1)], &[]), [row("own", 0, 1)]);
        // Deleted clicks stay counted.
        assert_eq!(correct(&[own(0, 3)], &[own(5, 3)], &[]), []);
    }

    #[test]
    fn campaigns_beyond_the_limit_count_as_other() {
        let of = |campaign: &str| (pivot(campaign, "DE"), figures(0, 2));
        assert_eq!(correct(&[of("unknown")], &[], &[]), [row(OTHER, 0, 2)]);
        assert_eq!(correct(&[of("")], &[], &[]), [row("", 0, 2)]);
        // The stored figures of a folded campaign: under `(other)`, and as details.
        let mut detail = pivot("folded", "DE");
        detail.at = detail.at.within(Grain::FoldedQuarter);
        let stored = [of(OTHER), (detail, figures(0, 2))];
        assert_eq!(correct(&[of("folded")], &stored, &[]), []);
        assert_eq!(correct(&[of("folded")], &[], &[]), [row("folded", 0, 2)]);
    }

    #[test]
    fn other_spans_and_environments_are_left_out() {
        let mut later = pivot("own", "DE");
        later.at = at(DAY + HOUR);
        let mut test = pivot("own", "DE");
        test.at.environment = Environment::Test;
        for key in [later, test] {
            let rows = [(key, figures(0, 1))];
            assert_eq!(correct(&rows, &[], &[]), []);
            assert_eq!(correct(&[], &rows, &[]), []);
            assert_eq!(correct(&[], &[], &rows), []);
        }
    }
}
