//! The live stream: new taps on ads, some of which lead to an install and first events.

use crate::Sample;
use crate::sample_app::{SampleAction, SampleApp, SampleDevice};
use rand::RngExt as _;
use std::collections::BTreeMap;
use tributary_domain::vocabulary::time::Timestamp;

/// Interval between taps, in milliseconds.
const TAP_EVERY: i64 = 9_000;
/// One in this many visitors does not install.
const ABANDON_EVERY: u64 = 3;
/// Time from the tap to the first open, in milliseconds.
const OPENED_AFTER: std::ops::Range<i64> = 11_000..20_000;
/// Time from the first open to the first events, in milliseconds.
const FIRST_EVENTS_AFTER: i64 = 4_000;
/// Events in first sessions, used in turn.
const FIRST_SESSIONS: [&[&str]; 5] = [
    &["open_screen", "sign_up"],
    &["open_screen", "view_content", "purchase"],
    &["open_screen", "sign_up", "start_trial"],
    &["open_screen"],
    &["sign_up", "add_to_cart", "purchase"],
];

/// Scheduled actions of the live stream.
#[derive(Debug)]
pub struct LiveStream {
    apps: Vec<SampleApp>,
    /// Actions by time. The number distinguishes actions with the same time.
    scheduled: BTreeMap<(Timestamp, u64), SampleAction>,
    sequence: u64,
    taps: u64,
    next_tap: Timestamp,
}

impl LiveStream {
    /// Creates a stream that starts at `from`.
    pub fn new(sample: &Sample, from: Timestamp) -> Self {
        Self {
            apps: sample.apps.clone(),
            scheduled: BTreeMap::new(),
            sequence: 0,
            taps: 0,
            next_tap: from,
        }
    }

    /// Returns the actions due by now, in order. Each action is returned once.
    pub fn due(&mut self, now: Timestamp) -> Vec<SampleAction> {
        while self.next_tap <= now {
            self.schedule_tap();
        }
        let later = self.scheduled.split_off(&(now, u64::MAX));
        std::mem::replace(&mut self.scheduled, later)
            .into_values()
            .collect()
    }

    /// Schedules a tap on an ad of the next app.
    fn schedule_tap(&mut self) {
        let (number, at) = (self.taps, self.next_tap);
        self.taps += 1;
        self.next_tap = Timestamp::from_millis(at.as_millis() + TAP_EVERY);
        let apps = self.apps.len() as u64;
        let app = self.apps[usize::try_from(number % apps).unwrap_or(0)].clone();
        // Device numbers continue after those in the history.
        let device = app.devices() + number;
        let mut random = app.random(device, 5);
        let later = random.random_range(OPENED_AFTER);
        let one = SampleDevice::draw_with_delay(&app, device, at, later, &mut random);
        for action in one.clicks(&app, &mut random) {
            self.schedule(action);
        }
        // Devices from Apple Ads are skipped, because the demo does not call Apple.
        if number % ABANDON_EVERY == ABANDON_EVERY - 1 || one.has_apple_token() {
            return;
        }
        self.schedule(SampleAction::Configure(Box::new(one.configure(&app))));
        let begin = one.installed_at().as_millis() + FIRST_EVENTS_AFTER;
        let names =
            FIRST_SESSIONS[usize::try_from(number / apps).unwrap_or(0) % FIRST_SESSIONS.len()];
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let begin = Timestamp::from_millis(begin);
        self.schedule(one.session(&app, begin, "first", names, &mut random));
    }

    fn schedule(&mut self, action: SampleAction) {
        self.sequence += 1;
        self.scheduled.insert((action.at(), self.sequence), action);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_app::tests::app;
    use tributary_domain::access::Authorized;
    use tributary_domain::vocabulary::id::OrganizationId;

    fn stream(from: Timestamp) -> LiveStream {
        let sample = Sample {
            writer: Authorized::operator(OrganizationId::from_bytes([1; 16])),
            apps: vec![app(1), app(2), app(3)],
            app_store_ids: vec![1, 2, 3],
        };
        LiveStream::new(&sample, from)
    }

    #[test]
    fn actions_are_due_in_order_and_once() {
        let begin = 21_000_i64 * 24 * 60 * 60 * 1_000;
        let at = |seconds: i64| Timestamp::from_millis(begin + seconds * 1_000);
        let mut once = stream(at(0));
        let all: Vec<String> = once
            .due(at(600))
            .iter()
            .map(|action| format!("{action:?}"))
            .collect();
        let mut often = stream(at(0));
        let mut events = 0;
        let mut piecemeal = Vec::new();
        for second in 0..=600 {
            for action in often.due(at(second)) {
                assert!(action.at() <= at(second));
                events += action.events();
                piecemeal.push(format!("{action:?}"));
            }
        }
        assert_eq!(piecemeal.len(), all.len());
        assert!(
            (20..400).contains(&events),
            "{events} events in ten minutes"
        );
    }
}
