//! What happens in the demo on a day. The history and the live stream use the same plan, so that the
//! stream continues the history.

use crate::sample_app::{SampleAction, SampleApp};
use crate::{billing, fraud};

/// Returns a day's actions in stages, as [`SampleApp::day`] does, with billing notifications and
/// fraud.
pub(crate) fn stages_of_day(app: &SampleApp, day: u32) -> [Vec<SampleAction>; 4] {
    let mut stages = app.day(day);
    let [clicks, opens, _, events] = &mut stages;
    for one in fraud::of_day(app, day) {
        clicks.extend(one.clicks);
        opens.push(one.open);
        events.push(one.session);
    }
    events.extend(billing::of_day(app, day));
    for stage in [clicks, opens, events] {
        stage.sort_by_key(SampleAction::at);
    }
    stages
}
