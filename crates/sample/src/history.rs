//! Writing the history, and connecting the networks before its end.

use crate::organization::{Sample, fixed_runtime};
use crate::sample_app::{SampleAction, apply_all};
use crate::{costs, postbacks};
use std::sync::Arc;
use tributary_domain::access::Actor;
use tributary_domain::keyring::Keyring;
use tributary_domain::report::cost::COSTS_MAX;
use tributary_domain::runtime::Runtime;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{Store, StoreResult};

/// Days of history, today among them.
pub const DAYS: u32 = 60;
/// The networks are connected at the beginning of the last days: what happened before is too old to be sent.
const CONNECTED_DAYS: u32 = 2;

/// Writes what happened until now, a day at a time, all apps at once.
pub async fn write_history(
    store: &Arc<dyn Store>,
    sample: &Sample,
    keyring: &Keyring,
    source: &Runtime,
) -> StoreResult<()> {
    let until = source.now();
    let mut costs = vec![Vec::new(); sample.apps.len()];
    let mut told = Vec::new();
    for day in 0..DAYS {
        if day + CONNECTED_DAYS == DAYS {
            let at = sample.apps[0].day_start(day);
            sample.connect(&**store, keyring, at, source).await?;
        }
        let mut stages: [Vec<SampleAction>; 4] = Default::default();
        for (place, month) in sample.apps.iter().enumerate() {
            let steps = month.day(day);
            costs[place].extend(costs::of_day(month, day, &steps[0]));
            for (stage, steps) in stages.iter_mut().zip(steps) {
                stage.extend(steps.into_iter().filter_map(|step| until_now(step, until)));
            }
            let store_id = sample.app_store_ids[place];
            told.extend(postbacks::of_day(month, store_id, day));
        }
        for stage in stages {
            apply_all(store, stage).await?;
        }
    }
    told.retain(|step| step.at() <= until);
    apply_all(store, told).await?;
    for (month, costs) in sample.apps.iter().zip(costs) {
        for costs in costs.chunks(COSTS_MAX) {
            let origin = fixed_runtime(until, month.seed).origin(Actor::Operator, None, None);
            store
                .put_costs(&sample.writer, month.app, costs.to_vec(), origin)
                .await?;
        }
    }
    Ok(())
}

/// What has happened by now. Apple answers in time, so that no token waits to be sent to the real one.
fn until_now(step: SampleAction, until: Timestamp) -> Option<SampleAction> {
    match step {
        SampleAction::Apple(at) => Some(SampleAction::Apple(at.min(until))),
        step => (step.at() <= until).then_some(step),
    }
}
