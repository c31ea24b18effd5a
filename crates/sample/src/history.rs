//! Writes the history: what happened on each day, and the deliveries to the networks.

use crate::day_plan::stages_of_day;
use crate::organization::{Sample, fixed_runtime};
use crate::sample_app::{SampleAction, apply_all};
use crate::{costs, postbacks};
use std::sync::Arc;
use tributary_domain::access::Actor;
use tributary_domain::integration::Network;
use tributary_domain::keyring::Keyring;
use tributary_domain::report::cost::COSTS_MAX;
use tributary_domain::runtime::Runtime;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{Store, StoreResult};

/// Days of history, including today.
pub const DAYS: u32 = 60;
/// Networks that every app is connected to from the first day.
const FIRST_NETWORKS: [Network; 3] = [Network::A, Network::B, Network::C];
/// Network that is connected later, and the day. Its earlier events were not forwarded.
const LATER_NETWORK: (Network, u32) = (Network::D, 45);

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
    // The first days of the apps begin at different times, because of their time zones.
    let begins = sample.apps.iter().map(|app| app.begin);
    let begin = begins.min().unwrap_or(until);
    let first = (&FIRST_NETWORKS[..], begin);
    sample.connect(&**store, keyring, first, runtime).await?;
    for day in 0..DAYS {
        let (network, connected_on) = LATER_NETWORK;
        if day == connected_on {
            let later = (&[network][..], sample.apps[0].day_start(day));
            sample.connect(&**store, keyring, later, runtime).await?;
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
        let end = sample.apps[0].day_start(day + 1);
        sample.deliver_past(store, (end, until)).await?;
    }
    sample.create_notices(&**store, until).await?;
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
