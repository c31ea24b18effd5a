//! What goes on happening: now and then somebody taps an ad, perhaps installs the app, and begins to use it.

use crate::Sample;
use crate::sample_app::{SampleAction, SampleApp, SampleDevice};
use rand::RngExt as _;
use std::collections::BTreeMap;
use tributary_domain::vocabulary::time::Timestamp;

/// How often somebody taps an ad, in milliseconds.
const TAP_EVERY: i64 = 9_000;
/// One of so many looks at the store and leaves.
const LEAVES: u64 = 3;
/// From the tap to the first open, in milliseconds.
const OPENED_AFTER: std::ops::Range<i64> = 11_000..20_000;
/// From the first open to the first events, in milliseconds.
const BEGUN_AFTER: i64 = 4_000;
/// What newcomers do, one row after the other.
const FIRST_SESSIONS: [&[&str]; 5] = [
    &["open_screen", "sign_up"],
    &["open_screen", "view_content", "purchase"],
    &["open_screen", "sign_up", "start_trial"],
    &["open_screen"],
    &["sign_up", "add_to_cart", "purchase"],
];

/// What is to happen, and when.
#[derive(Debug)]
pub struct LiveStream {
    apps: Vec<SampleApp>,
    /// By their time; a number keeps apart what happens at the same moment.
    waiting: BTreeMap<(Timestamp, u64), SampleAction>,
    steps: u64,
    taps: u64,
    next_tap: Timestamp,
}

impl LiveStream {
    /// Begins at a moment.
    pub fn new(sample: &Sample, from: Timestamp) -> Self {
        Self {
            apps: sample.apps.clone(),
            waiting: BTreeMap::new(),
            steps: 0,
            taps: 0,
            next_tap: from,
        }
    }

    /// What has happened by now, in its order. Each is given once.
    pub fn due(&mut self, now: Timestamp) -> Vec<SampleAction> {
        while self.next_tap <= now {
            self.tap();
        }
        let later = self.waiting.split_off(&(now, u64::MAX));
        std::mem::replace(&mut self.waiting, later)
            .into_values()
            .collect()
    }

    /// Somebody taps an ad of the next app.
    fn tap(&mut self) {
        let (number, at) = (self.taps, self.next_tap);
        self.taps += 1;
        self.next_tap = Timestamp::from_millis(at.as_millis() + TAP_EVERY);
        let apps = self.apps.len() as u64;
        let month = self.apps[usize::try_from(number % apps).unwrap_or(0)].clone();
        // Behind those of the history.
        let device = month.devices() + number;
        let mut random = month.random(device, 5);
        let later = random.random_range(OPENED_AFTER);
        let one = SampleDevice::draw_with_delay(&month, device, at, later, &mut random);
        for step in one.clicks(&month, &mut random) {
            self.wait_for(step);
        }
        // Only Apple could tell what brought some of them, and nobody asks it here.
        if number % LEAVES == LEAVES - 1 || one.has_apple_token() {
            return;
        }
        self.wait_for(SampleAction::Configure(Box::new(one.configure(&month))));
        let begin = one.installed_at().as_millis() + BEGUN_AFTER;
        let names =
            FIRST_SESSIONS[usize::try_from(number / apps).unwrap_or(0) % FIRST_SESSIONS.len()];
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let begin = Timestamp::from_millis(begin);
        self.wait_for(one.session(&month, begin, "first", names, &mut random));
    }

    fn wait_for(&mut self, step: SampleAction) {
        self.steps += 1;
        self.waiting.insert((step.at(), self.steps), step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_app::tests::month;
    use tributary_domain::access::Authorized;
    use tributary_domain::vocabulary::id::OrganizationId;

    fn stream(from: Timestamp) -> LiveStream {
        let sample = Sample {
            writer: Authorized::operator(OrganizationId::from_bytes([1; 16])),
            apps: vec![month(1), month(2), month(3)],
            app_store_ids: vec![1, 2, 3],
        };
        LiveStream::new(&sample, from)
    }

    #[test]
    fn a_few_things_happen_a_minute_in_their_order_and_once() {
        let begin = 21_000_i64 * 24 * 60 * 60 * 1_000;
        let at = |seconds: i64| Timestamp::from_millis(begin + seconds * 1_000);
        let mut once = stream(at(0));
        let all: Vec<String> = once
            .due(at(600))
            .iter()
            .map(|step| format!("{step:?}"))
            .collect();
        let mut often = stream(at(0));
        let mut events = 0;
        let mut piecemeal = Vec::new();
        for second in 0..=600 {
            for step in often.due(at(second)) {
                assert!(step.at() <= at(second));
                events += step.events();
                piecemeal.push(format!("{step:?}"));
            }
        }
        assert_eq!(piecemeal.len(), all.len());
        assert!((20..400).contains(&events), "{events} in ten minutes");
    }
}
