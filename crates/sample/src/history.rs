//! Writes the history, and connects the networks shortly before the end of the history.

use crate::day_plan::stages_of_day;
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

/// Days of history, including today.
pub const DAYS: u32 = 60;
/// Number of days at the end of the history with connected networks. Earlier events are too old to
/// forward.
const CONNECTED_DAYS: u32 = 2;

/// Writes the history until now, one day at a time for all apps. Returns its end, from which the
/// live stream continues.
pub async fn write_history(
    store: &Arc<dyn Store>,
    sample: &Sample,
    keyring: &Keyring,
    runtime: &Runtime,
) -> StoreResult<Timestamp> {
    let until = runtime.now();
    sample.connect_billing(&**store, keyring, runtime).await?;
    let mut costs = vec![Vec::new(); sample.apps.len()];
    let mut postback_actions = Vec::new();
    for day in 0..DAYS {
        if day + CONNECTED_DAYS == DAYS {
            let at = sample.apps[0].day_start(day);
            sample.connect(&**store, keyring, at, runtime).await?;
        }
        let mut stages: [Vec<SampleAction>; 4] = Default::default();
        for (index, app) in sample.apps.iter().enumerate() {
            let actions = stages_of_day(app, day);
            costs[index].extend(costs::of_day(app, day, &actions[0]));
            for (stage, actions) in stages.iter_mut().zip(actions) {
                stage.extend(
                    actions
                        .into_iter()
                        .filter_map(|action| clamp_to_now(action, until)),
                );
            }
            let store_id = sample.app_store_ids[index];
            postback_actions.extend(postbacks::of_day(app, store_id, day));
        }
        for stage in stages {
            apply_all(store, stage).await?;
        }
    }
    postback_actions.retain(|action| action.at() <= until);
    apply_all(store, postback_actions).await?;
    for (app, costs) in sample.apps.iter().zip(costs) {
        for costs in costs.chunks(COSTS_MAX) {
            let origin = fixed_runtime(until, app.seed).origin(Actor::Operator, None, None);
            store
                .put_costs(&sample.writer, app.app, costs.to_vec(), origin)
                .await?;
        }
    }
    Ok(until)
}

/// Returns the action, or `None` if it is after `until`. Apple's responses are moved to `until`
/// instead, so that no pending token is left to be redeemed at Apple's real service.
fn clamp_to_now(action: SampleAction, until: Timestamp) -> Option<SampleAction> {
    match action {
        SampleAction::Apple(at) => Some(SampleAction::Apple(at.min(until))),
        action => (action.at() <= until).then_some(action),
    }
}
