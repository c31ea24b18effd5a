//! The live stream: continues the history with the same plan for each day, so that its level, its
//! weekdays and its hours are those of the history.

use crate::Sample;
use crate::day_plan::stages_of_day;
use crate::postbacks;
use crate::sample_app::{SampleAction, SampleApp};
use std::collections::BTreeMap;
use std::time::Duration;
use tributary_domain::vocabulary::time::Timestamp;

/// How long before its start a day is planned: some visitors of a day click before midnight.
const PLANNED_BEFORE: Duration = Duration::from_hours(1);

/// An app with its App Store id and the next day to plan.
#[derive(Debug)]
struct StreamedApp {
    app: SampleApp,
    app_store_id: i64,
    next_day: u32,
}

/// Scheduled actions of the live stream.
#[derive(Debug)]
pub struct LiveStream {
    apps: Vec<StreamedApp>,
    /// Actions by time. The number distinguishes actions with the same time.
    scheduled: BTreeMap<(Timestamp, u64), SampleAction>,
    sequence: u64,
    /// End of the history.
    from: Timestamp,
}

impl LiveStream {
    /// Creates a stream that continues the history from its end.
    pub fn new(sample: &Sample, from: Timestamp) -> Self {
        let apps = sample.apps.iter().zip(&sample.app_store_ids);
        let apps = apps.map(|(app, app_store_id)| StreamedApp {
            app_store_id: *app_store_id,
            // Some visitors of the day before open the app after midnight.
            next_day: app.day_of(from).saturating_sub(1),
            app: app.clone(),
        });
        Self {
            apps: apps.collect(),
            scheduled: BTreeMap::new(),
            sequence: 0,
            from,
        }
    }

    /// Returns the actions due by now, in order. Each action is returned once.
    pub fn due(&mut self, now: Timestamp) -> Vec<SampleAction> {
        for index in 0..self.apps.len() {
            self.plan_days(index, now.plus(PLANNED_BEFORE));
        }
        let later = self.scheduled.split_off(&(now, u64::MAX));
        std::mem::replace(&mut self.scheduled, later)
            .into_values()
            .collect()
    }

    /// Returns the expected number of installs in the hour that contains a time, in thousandths.
    pub fn expected_installs(&self, at: Timestamp) -> u64 {
        let apps = self.apps.iter();
        apps.map(|one| one.app.expected_installs(at)).sum()
    }

    /// Plans the days of an app that have begun by `until`.
    fn plan_days(&mut self, index: usize, until: Timestamp) {
        loop {
            let one = &mut self.apps[index];
            let day = one.next_day;
            if one.app.day_start(day) > until {
                return;
            }
            one.next_day += 1;
            let mut actions: Vec<SampleAction> = stages_of_day(&one.app, day)
                .into_iter()
                .flatten()
                .filter_map(without_apple)
                .collect();
            actions.extend(postbacks::received_on(&one.app, one.app_store_id, day));
            for action in actions.into_iter().filter(|one| one.at() > self.from) {
                self.sequence += 1;
                self.scheduled.insert((action.at(), self.sequence), action);
            }
        }
    }
}

/// Removes what needs Apple's service, which the demo does not call: a device that came from Apple
/// Ads is organic.
fn without_apple(action: SampleAction) -> Option<SampleAction> {
    match action {
        SampleAction::Apple(_) => None,
        SampleAction::Configure(mut open) => {
            open.ad_services_token = None;
            Some(SampleAction::Configure(open))
        }
        action => Some(action),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_app::tests::app;
    use rstest::rstest;
    use tributary_domain::access::Authorized;
    use tributary_domain::app::FraudPolicy;
    use tributary_domain::vocabulary::id::OrganizationId;

    const HOUR: Duration = Duration::from_hours(1);
    const DAY: Duration = Duration::from_hours(24);

    fn stream(apps: Vec<SampleApp>, from: Timestamp) -> LiveStream {
        let sample = Sample {
            writer: Authorized::operator(OrganizationId::from_bytes([1; 16])),
            app_store_ids: vec![1; apps.len()],
            apps,
        };
        LiveStream::new(&sample, from)
    }

    fn is_install(action: &SampleAction) -> bool {
        matches!(action, SampleAction::Configure(_))
    }

    #[test]
    fn actions_are_due_in_order_and_once() {
        let apps = || vec![app(1), app(2), app(3)];
        let from = app(1).day_start(59).plus(20 * HOUR);
        let mut once = stream(apps(), from);
        let all: Vec<String> = once
            .due(from.plus(12 * HOUR))
            .iter()
            .map(|action| format!("{action:?}"))
            .collect();
        let mut often = stream(apps(), from);
        let mut piecemeal = Vec::new();
        for minute in 0..=12 * 60_u32 {
            let now = from.plus(Duration::from_mins(minute.into()));
            for action in often.due(now) {
                assert!(from < action.at() && action.at() <= now);
                piecemeal.push(format!("{action:?}"));
            }
        }
        assert!(all.len() > 50, "{} actions", all.len());
        assert_eq!(piecemeal, all);
    }

    #[test]
    fn the_stream_begins_where_the_history_ends() {
        let app = app(1);
        let from = app.day_start(59).plus(12 * HOUR);
        let on_last_day = stages_of_day(&app, 59).into_iter().flatten();
        let expected = on_last_day.filter(|one| is_install(one) && one.at() > from);
        let streamed = stream(vec![app.clone()], from).due(app.day_start(60));
        let found = streamed.iter().filter(|one| is_install(one));
        let before_midnight = expected.filter(|one| one.at() <= app.day_start(60));
        assert_eq!(found.count(), before_midnight.count());
    }

    /// Compares the installs of some hours of a weekday: expected, in the last week of the history,
    /// and in the first week of the stream.
    #[rstest]
    #[case::morning(1, 7..12)]
    #[case::noon(3, 11..15)]
    #[case::evening(5, 18..22)]
    #[case::night(6, 0..7)]
    fn the_live_rate_is_that_of_the_history(
        #[case] weekday: u32,
        #[case] hours: std::ops::Range<u32>,
    ) {
        let mut app = app(7);
        app.events = 600_000;
        let history_day = 49 + weekday;
        let within = |day: u32| {
            let begin = app.day_start(day);
            begin.plus(HOUR * hours.start)..begin.plus(HOUR * hours.end)
        };
        let expected = |day: u32| -> u64 {
            let begin = app.day_start(day);
            let hours = hours.clone();
            hours
                .map(|hour| app.expected_installs(begin.plus(HOUR * hour)))
                .sum::<u64>()
                / 1_000
        };
        let count = |actions: &[SampleAction], day: u32| -> u64 {
            let period = within(day);
            let installs = actions.iter().filter(|one| is_install(one));
            installs.filter(|one| period.contains(&one.at())).count() as u64
        };
        // Some visitors of the day before open the app after midnight.
        let history = [history_day - 1, history_day].map(|day| stages_of_day(&app, day));
        let history: Vec<SampleAction> = history.into_iter().flatten().flatten().collect();
        let live_day = history_day + 14;
        let from = app.day_start(live_day);
        let live = stream(vec![app.clone()], from).due(from.plus(DAY));
        let (past, now) = (count(&history, history_day), count(&live, live_day));
        let is_near = |one: u64, other: u64| one.abs_diff(other) * 100 <= 25 * other;
        assert!(
            is_near(past, expected(history_day)),
            "{past} {}",
            expected(history_day)
        );
        assert!(
            is_near(now, expected(live_day)),
            "{now} {}",
            expected(live_day)
        );
        assert!(is_near(now, past), "{now} after {past}");
    }

    #[test]
    fn a_day_of_the_stream_has_every_kind_of_activity() {
        let mut app = app(1);
        app.rules.fraud = FraudPolicy::Hold;
        let from = app.day_start(60);
        let actions = stream(vec![app.clone()], from).due(from.plus(DAY));
        let has = |kind: fn(&SampleAction) -> bool| actions.iter().any(kind);
        assert!(has(|one| matches!(one, SampleAction::Click(_))));
        assert!(has(|one| matches!(one, SampleAction::Events(_))));
        assert!(has(|one| matches!(one, SampleAction::Web(_))));
        assert!(has(|one| matches!(one, SampleAction::Postback(_))));
        assert!(has(|one| matches!(one, SampleAction::Billing(_))));
        assert!(!has(|one| matches!(one, SampleAction::Apple(_))));
        let farms = actions.iter().filter(|one| match one {
            SampleAction::Configure(open) => {
                open.traits.model.as_deref() == Some("sdk_gphone64_x86_64")
            }
            _ => false,
        });
        let farms = farms.count();
        let held = crate::fraud::of_day(&app, 60).len();
        assert!(
            held > 0 && farms <= held + actions.len() / 10,
            "{farms} and {held}"
        );
    }
}
