//! When a notice is due. Days and hours are those of the app's time zone.

use super::{NoticeTopic, Threshold, ThresholdWindow};
use crate::cost_source::PULL_INTERVAL;
use crate::report::range::{DayRange, days_before};
use crate::vocabulary::calendar::{day_start, to_date, to_time_zone, today};
use crate::vocabulary::day::Day;
use crate::vocabulary::time::Timestamp;
use crate::vocabulary::timezone::Timezone;
use std::time::Duration;

/// How long after its end a day is judged. SDKs send events in batches.
const SETTLING: Duration = Duration::from_hours(1);
/// How long after its end a day is judged by a metric that needs costs: the longest time until the
/// next import of costs, and two hours for the import and its retries.
const COST_SETTLING: Duration = PULL_INTERVAL.saturating_add(Duration::from_hours(2));
/// How often a day that is not over is compared with a threshold.
const RUNNING_CHECK: Duration = Duration::from_mins(5);
/// Days of a week.
const WEEK: i32 = 7;

/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the day it is named after")]
pub enum Weekday {
    Monday,
    Tuesday,
    Wednesday,
    Thursday,
    Friday,
    Saturday,
    Sunday,
}

crate::keywords! {
    Weekday[7] {
        Monday => "monday",
        Tuesday => "tuesday",
        Wednesday => "wednesday",
        Thursday => "thursday",
        Friday => "friday",
        Saturday => "saturday",
        Sunday => "sunday",
    }
}

impl Weekday {
    /// Returns the weekday of a day.
    pub fn of(day: Day) -> Self {
        // 1970-01-01 was a Thursday.
        let since_monday = (day.as_days().saturating_add(3)).rem_euclid(WEEK);
        Self::ALL[usize::try_from(since_monday).unwrap_or(0)]
    }
}

/// What a notice has checked and sent already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NoticeProgress {
    /// Last day that needs no further check; `None` for topics that follow alerts.
    pub done_until: Option<Day>,
    /// Whether the metric was beyond the threshold at the last check of a week.
    pub is_beyond: bool,
}

/// A check that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueCheck {
    /// The days to report or to judge.
    pub range: DayRange,
    /// Whether the last day is not over yet, or its figures may still grow.
    pub is_running: bool,
}

/// What a notice has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticePlan {
    /// The check that is due now.
    pub due: Option<DueCheck>,
    /// When to look again; `None` for topics that follow alerts.
    pub next_at: Option<Timestamp>,
}

/// Returns an hour of a day. An hour that the clocks skip is the one after it; of an hour that occurs
/// twice, the first counts.
fn hour_of_day(day: Day, hour: u8, zone: &Timezone) -> Timestamp {
    let zoned = to_date(day).and_then(|date| {
        let time = date.at(i8::try_from(hour).unwrap_or(0), 0, 0, 0);
        time.to_zoned(to_time_zone(zone)).ok()
    });
    Timestamp::from_millis(zoned.map_or(i64::MAX, |zoned| zoned.timestamp().as_millisecond()))
}

fn start_of(day: Day, zone: &Timezone) -> Timestamp {
    let start = to_date(day).map(|date| day_start(date, &to_time_zone(zone)));
    start.unwrap_or(Timestamp::from_millis(i64::MAX))
}

/// Returns when a day is complete enough to be judged.
fn settled_at(day: Day, zone: &Timezone, settling: Duration) -> Timestamp {
    start_of(day.following(), zone).plus(settling)
}

/// Returns the last day that can be judged.
fn last_settled(now: Timestamp, zone: &Timezone, settling: Duration) -> Day {
    let yesterday = days_before(today(now, zone), 1);
    if settled_at(yesterday, zone, settling) <= now {
        yesterday
    } else {
        days_before(yesterday, 1)
    }
}

/// Returns how long after its end a day is judged.
const fn settling(threshold: &Threshold) -> Duration {
    if threshold.metric.needs_cost {
        COST_SETTLING
    } else {
        SETTLING
    }
}

/// Returns the latest day on which a summary was due, and the next time.
fn summary_times(
    weekday: Option<Weekday>,
    hour: u8,
    now: Timestamp,
    zone: &Timezone,
) -> (Day, Timestamp) {
    let sends_on = |day: Day| weekday.is_none_or(|weekday| Weekday::of(day) == weekday);
    let today = today(now, zone);
    let is_past = |day: Day| hour_of_day(day, hour, zone) <= now;
    let mut latest = today;
    while !(sends_on(latest) && is_past(latest)) {
        latest = days_before(latest, 1);
    }
    let mut next = latest.following();
    while !sends_on(next) {
        next = next.following();
    }
    (latest, hour_of_day(next, hour, zone))
}

impl NoticeTopic {
    /// Returns the progress of a new or changed notice: what is already over is not sent.
    pub fn first_progress(&self, zone: &Timezone, now: Timestamp) -> NoticeProgress {
        let done_until = match self {
            Self::DailySummary { hour } => Some(summary_times(None, *hour, now, zone).0),
            Self::WeeklySummary { weekday, hour } => {
                Some(summary_times(Some(*weekday), *hour, now, zone).0)
            }
            Self::Threshold(_) => Some(today(now, zone)),
            Self::IntegrationPaused | Self::TrafficAnomaly => None,
        };
        NoticeProgress {
            done_until: done_until.map(|day| days_before(day, 1)),
            is_beyond: false,
        }
    }

    /// Returns what is due now, and when to look again. After a downtime only the latest summary is
    /// due, and only the latest day is judged.
    pub fn plan(&self, progress: NoticeProgress, zone: &Timezone, now: Timestamp) -> NoticePlan {
        let is_open = |day: Day| progress.done_until.is_none_or(|done| done < day);
        let check = |to: Day, days: i32, is_running| DueCheck {
            range: DayRange {
                from: days_before(to, days - 1),
                to,
                zone: zone.clone(),
            },
            is_running,
        };
        let summary = |weekday, hour, days| {
            let (latest, next_at) = summary_times(weekday, hour, now, zone);
            let to = days_before(latest, 1);
            NoticePlan {
                due: is_open(to).then(|| check(to, days, false)),
                next_at: Some(next_at),
            }
        };
        match self {
            Self::DailySummary { hour } => summary(None, *hour, 1),
            Self::WeeklySummary { weekday, hour } => summary(Some(*weekday), *hour, WEEK),
            Self::IntegrationPaused | Self::TrafficAnomaly => NoticePlan {
                due: None,
                next_at: None,
            },
            Self::Threshold(threshold) => {
                let settling = settling(threshold);
                let settled = last_settled(now, zone, settling);
                let days = match threshold.window {
                    ThresholdWindow::Day => 1,
                    ThresholdWindow::Week => WEEK,
                };
                let today = today(now, zone);
                // A day that is not settled comes before the next one, which would close it.
                let yesterday = days_before(today, 1);
                let running = if is_open(yesterday) { yesterday } else { today };
                let due = if is_open(settled) {
                    Some(check(settled, days, false))
                } else if threshold.judges_running_day() && is_open(running) {
                    Some(check(running, 1, true))
                } else {
                    None
                };
                let next_at = if threshold.judges_running_day() && is_open(today) {
                    now.plus(RUNNING_CHECK)
                } else {
                    settled_at(settled.following(), zone, settling)
                };
                NoticePlan {
                    due,
                    next_at: Some(next_at),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{threshold, weekly};
    use super::*;
    use crate::notice::ThresholdCondition::{Over, Under};
    use proptest::prelude::*;
    use rstest::rstest;

    fn at(text: &str) -> Timestamp {
        let moment: jiff::Timestamp = text.parse().unwrap();
        Timestamp::from_millis(moment.as_millisecond())
    }

    fn berlin() -> Timezone {
        Timezone::parse("Europe/Berlin").unwrap()
    }

    fn written(plan: &NoticePlan) -> (Option<String>, Option<String>) {
        let due = plan.due.as_ref().map(|due| {
            let running = if due.is_running { " running" } else { "" };
            format!("{}..{}{running}", due.range.from, due.range.to)
        });
        let next = plan
            .next_at
            .map(|at| jiff::Timestamp::from_millisecond(at.as_millis()).unwrap());
        (due, next.map(|at| at.to_string()))
    }

    fn planned(topic: &NoticeTopic, done: &str, now: &str) -> (Option<String>, Option<String>) {
        let progress = NoticeProgress {
            done_until: Some(Day::parse(done).unwrap()),
            is_beyond: false,
        };
        written(&topic.plan(progress, &berlin(), at(now)))
    }

    #[rstest]
    #[case::not_yet("2026-01-10", "2026-01-12T06:59:59Z", None, "2026-01-12T07:00:00Z")]
    #[case::due(
        "2026-01-10",
        "2026-01-12T07:00:00Z",
        Some("2026-01-11..2026-01-11"),
        "2026-01-13T07:00:00Z"
    )]
    #[case::sent("2026-01-11", "2026-01-12T07:00:01Z", None, "2026-01-13T07:00:00Z")]
    #[case::before_the_hour_yesterday_counts(
        "2026-01-09",
        "2026-01-12T06:00:00Z",
        Some("2026-01-10..2026-01-10"),
        "2026-01-12T07:00:00Z"
    )]
    #[case::one_after_a_week_of_downtime(
        "2026-01-04",
        "2026-01-12T20:00:00Z",
        Some("2026-01-11..2026-01-11"),
        "2026-01-13T07:00:00Z"
    )]
    #[case::clocks_go_forward(
        "2026-03-27",
        "2026-03-29T06:00:00Z",
        Some("2026-03-28..2026-03-28"),
        "2026-03-30T06:00:00Z"
    )]
    #[case::clocks_go_back(
        "2026-10-23",
        "2026-10-25T07:00:00Z",
        Some("2026-10-24..2026-10-24"),
        "2026-10-26T07:00:00Z"
    )]
    fn a_daily_summary_is_due_at_its_hour(
        #[case] done: &str,
        #[case] now: &str,
        #[case] due: Option<&str>,
        #[case] next: &str,
    ) {
        let topic = NoticeTopic::DailySummary { hour: 8 };
        let expected = (due.map(str::to_owned), Some(next.to_owned()));
        assert_eq!(planned(&topic, done, now), expected);
    }

    #[rstest]
    #[case::skipped_hour("2026-03-27", "2026-03-29T01:00:00Z", Some("2026-03-28..2026-03-28"))]
    #[case::before_the_skipped_hour("2026-03-27", "2026-03-29T00:59:59Z", None)]
    #[case::first_of_two("2026-10-23", "2026-10-25T00:00:00Z", Some("2026-10-24..2026-10-24"))]
    #[case::not_again_at_the_second("2026-10-24", "2026-10-25T01:00:00Z", None)]
    fn an_hour_that_the_clocks_skip_or_repeat_sends_once(
        #[case] done: &str,
        #[case] now: &str,
        #[case] due: Option<&str>,
    ) {
        let topic = NoticeTopic::DailySummary { hour: 2 };
        assert_eq!(planned(&topic, done, now).0.as_deref(), due);
    }

    #[rstest]
    #[case::due(
        "2026-01-04",
        "2026-01-12T07:00:00Z",
        Some("2026-01-05..2026-01-11"),
        "2026-01-19T07:00:00Z"
    )]
    #[case::midweek("2026-01-11", "2026-01-15T12:00:00Z", None, "2026-01-19T07:00:00Z")]
    #[case::missed(
        "2026-01-04",
        "2026-01-15T12:00:00Z",
        Some("2026-01-05..2026-01-11"),
        "2026-01-19T07:00:00Z"
    )]
    fn a_weekly_summary_is_due_on_its_day(
        #[case] done: &str,
        #[case] now: &str,
        #[case] due: Option<&str>,
        #[case] next: &str,
    ) {
        let expected = (due.map(str::to_owned), Some(next.to_owned()));
        assert_eq!(planned(&weekly(Weekday::Monday, 8), done, now), expected);
    }

    #[rstest]
    #[case::a_sum_over_a_value_is_judged_during_the_day(
        "installs",
        Over,
        ThresholdWindow::Day,
        "2026-01-11",
        "2026-01-12T10:00:00Z",
        Some("2026-01-12..2026-01-12 running"),
        "2026-01-12T10:05:00Z"
    )]
    #[case::once_a_day(
        "installs",
        Over,
        ThresholdWindow::Day,
        "2026-01-12",
        "2026-01-12T10:00:00Z",
        None,
        "2026-01-13T00:00:00Z"
    )]
    #[case::the_end_of_the_day_is_not_missed(
        "installs",
        Over,
        ThresholdWindow::Day,
        "2026-01-11",
        "2026-01-13T00:00:00Z",
        Some("2026-01-12..2026-01-12"),
        "2026-01-13T00:05:00Z"
    )]
    #[case::under_waits_for_the_end_of_the_day(
        "installs",
        Under,
        ThresholdWindow::Day,
        "2026-01-11",
        "2026-01-12T22:59:00Z",
        None,
        "2026-01-13T00:00:00Z"
    )]
    #[case::under_after_it(
        "installs",
        Under,
        ThresholdWindow::Day,
        "2026-01-11",
        "2026-01-13T00:00:00Z",
        Some("2026-01-12..2026-01-12"),
        "2026-01-14T00:00:00Z"
    )]
    #[case::a_ratio_waits_too(
        "paidRoas",
        Over,
        ThresholdWindow::Day,
        "2026-01-11",
        "2026-01-12T10:00:00Z",
        None,
        "2026-01-13T05:00:00Z"
    )]
    #[case::costs_arrive_later(
        "paidRoas",
        Under,
        ThresholdWindow::Day,
        "2026-01-11",
        "2026-01-13T04:59:59Z",
        None,
        "2026-01-13T05:00:00Z"
    )]
    #[case::after_the_costs_arrived(
        "paidRoas",
        Under,
        ThresholdWindow::Day,
        "2026-01-11",
        "2026-01-13T05:00:00Z",
        Some("2026-01-12..2026-01-12"),
        "2026-01-14T05:00:00Z"
    )]
    #[case::spend_of_yesterday_comes_before_that_of_today(
        "cost",
        Over,
        ThresholdWindow::Day,
        "2026-01-11",
        "2026-01-13T02:00:00Z",
        Some("2026-01-12..2026-01-12 running"),
        "2026-01-13T02:05:00Z"
    )]
    #[case::spend_of_today_after_that_of_yesterday(
        "cost",
        Over,
        ThresholdWindow::Day,
        "2026-01-12",
        "2026-01-13T02:00:00Z",
        Some("2026-01-13..2026-01-13 running"),
        "2026-01-13T02:05:00Z"
    )]
    #[case::a_week_has_complete_days(
        "installs",
        Over,
        ThresholdWindow::Week,
        "2026-01-11",
        "2026-01-13T00:00:00Z",
        Some("2026-01-06..2026-01-12"),
        "2026-01-14T00:00:00Z"
    )]
    fn a_threshold_is_checked(
        #[case] metric: &str,
        #[case] condition: crate::notice::ThresholdCondition,
        #[case] window: ThresholdWindow,
        #[case] done: &str,
        #[case] now: &str,
        #[case] due: Option<&str>,
        #[case] next: &str,
    ) {
        let topic = NoticeTopic::Threshold(threshold(metric, condition, 10, window));
        let expected = (due.map(str::to_owned), Some(next.to_owned()));
        assert_eq!(planned(&topic, done, now), expected);
    }

    #[test]
    fn alerts_have_no_schedule() {
        for topic in [NoticeTopic::IntegrationPaused, NoticeTopic::TrafficAnomaly] {
            let now = at("2026-01-12T10:00:00Z");
            let progress = topic.first_progress(&berlin(), now);
            assert_eq!(progress, NoticeProgress::default());
            assert_eq!(written(&topic.plan(progress, &berlin(), now)), (None, None));
        }
    }

    proptest! {
        // Loading a time zone is slow without optimisation.
        #![proptest_config(ProptestConfig::with_cases(16))]
        /// A summary runs at every look; looks come at any time, also after long pauses.
        #[test]
        fn each_day_is_reported_at_most_once_and_the_last_one_always(
            hour in 0_u8..24,
            steps in proptest::collection::vec(1_u64..200_000, 1..30),
            zone in proptest::sample::select(vec!["UTC", "Europe/Berlin", "America/Sao_Paulo", "Pacific/Kiritimati"]),
        ) {
            let (topic, zone) = (NoticeTopic::DailySummary { hour }, Timezone::parse(zone).unwrap());
            let mut now = at("2026-03-20T12:00:00Z");
            let mut progress = topic.first_progress(&zone, now);
            prop_assert_eq!(topic.plan(progress, &zone, now).due, None, "a new notice sends nothing at once");
            for step in steps {
                now = now.plus(Duration::from_secs(step));
                let plan = topic.plan(progress, &zone, now);
                prop_assert!(plan.next_at.unwrap() > now);
                if let Some(due) = plan.due {
                    prop_assert!(progress.done_until.unwrap() < due.range.to);
                    prop_assert!(start_of(due.range.to.following(), &zone) <= now, "the day is over");
                    progress.done_until = Some(due.range.to);
                }
                prop_assert_eq!(topic.plan(progress, &zone, now).due, None);
            }
        }
    }
}
