//! A phone farm: installs that are flagged as fraud and held for a review.

use crate::sample_app::{SampleAction, SampleApp, SampleDevice};
use std::time::Duration;
use tributary_domain::app::FraudPolicy;

/// One flagged install per this many others, and at least one a day.
const INSTALLS_PER_FRAUD: u64 = 12;
/// Number of the first device; those of other devices are lower.
const FIRST_NUMBER: u64 = 1 << 40;
/// Device numbers reserved for each day.
const NUMBERS_PER_DAY: u64 = 1_000;
/// Time from the first open to the first events.
const SESSION_AFTER: Duration = Duration::from_secs(20);

/// The actions of one device.
pub(crate) struct FraudulentDevice {
    pub(crate) clicks: Vec<SampleAction>,
    pub(crate) open: SampleAction,
    pub(crate) session: SampleAction,
}

/// Returns the devices of a day; none if the app does not hold flagged installs.
pub(crate) fn of_day(app: &SampleApp, day: u32) -> Vec<FraudulentDevice> {
    if app.rules.fraud != FraudPolicy::Hold {
        return Vec::new();
    }
    let count = app.installs_on(day) / INSTALLS_PER_FRAUD + 1;
    let first = FIRST_NUMBER + u64::from(day) * NUMBERS_PER_DAY;
    let numbers = first..first + count.min(NUMBERS_PER_DAY);
    numbers.map(|number| device(app, day, number)).collect()
}

fn device(app: &SampleApp, day: u32, number: u64) -> FraudulentDevice {
    let mut random = app.random(number, 6);
    let clicked_at = app.moment(day, &mut random);
    let one = SampleDevice::draw_fraud(app, number, clicked_at, &mut random);
    let begin = one.installed_at().plus(SESSION_AFTER);
    let names = ["open_screen", "purchase"].map(str::to_owned).to_vec();
    FraudulentDevice {
        clicks: one.clicks(app, &mut random),
        open: SampleAction::Configure(Box::new(one.configure(app))),
        session: one.session(app, begin, "farm", names, &mut random),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_app::tests::app;

    #[test]
    fn only_apps_that_hold_installs_have_a_phone_farm() {
        let mut app = app(1);
        app.rules.fraud = FraudPolicy::Flag;
        assert_eq!(of_day(&app, 40).len(), 0);
        app.rules.fraud = FraudPolicy::Hold;
        let devices = of_day(&app, 40);
        assert!(!devices.is_empty());
        for one in devices {
            assert!(one.open.at() < one.session.at());
            assert_eq!(app.day_of(one.clicks[0].at()), 40);
        }
    }
}
