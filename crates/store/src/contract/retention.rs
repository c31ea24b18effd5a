//! Retention: deleting attribution data of inactive devices.

use super::erasure_fixtures::{
    DEVICE, PersonScenario, billing_notification, device, person_scenario,
};
use super::fixtures::{SharedStore, at};
use crate::AttributionSweep;
use tributary_domain::billing::{NotificationMeaning, PaymentClaim};
use tributary_domain::device::Identity;

/// Time of the latest event of [`person_scenario`]'s device.
const LAST_ACTIVE: i64 = 90_000;

async fn sweep(scenario: &PersonScenario, before: i64) -> (u64, u64) {
    let swept = scenario.tenant().store.forget_attributions(at(before), 10);
    let AttributionSweep {
        examined,
        forgotten,
    } = swept.await.expect("attribution data is deleted");
    (examined, forgotten)
}

/// An active device keeps everything and is not examined again until its last activity is older
/// than the retention limit.
pub async fn an_active_device_keeps_its_attribution_data(store: &SharedStore) {
    let scenario = person_scenario(store).await;
    let before = scenario
        .device_details(device(DEVICE))
        .await
        .expect("device details");
    assert_eq!(sweep(&scenario, LAST_ACTIVE).await, (1, 0));
    assert_eq!(sweep(&scenario, LAST_ACTIVE).await, (0, 0));
    assert_eq!(
        scenario
            .device_details(device(DEVICE))
            .await
            .expect("device details"),
        before,
        "nothing changed"
    );
}

/// An inactive device loses its advertising ids, hashes, traits and candidate clicks. Its credit,
/// its events and all figures stay.
pub async fn an_inactive_device_keeps_its_id_and_credit_only(store: &SharedStore) {
    let scenario = person_scenario(store).await;
    let before = scenario
        .device_details(device(DEVICE))
        .await
        .expect("device details");
    let figures = scenario.figures().await;
    assert_eq!(sweep(&scenario, LAST_ACTIVE + 1).await, (1, 1));
    assert_eq!(sweep(&scenario, LAST_ACTIVE + 1).await, (0, 0));
    let after = scenario
        .device_details(device(DEVICE))
        .await
        .expect("device details");
    assert_eq!(after.state.identity, Identity::default());
    assert_eq!(after.state.first_payment, before.state.first_payment);
    let stays = after.state.device.expect("a device");
    assert_eq!(
        (stays.advertising_id, stays.idfv, stays.traits.model),
        (None, None, None)
    );
    let (was, is) = (
        before.state.attribution.expect("a decision"),
        after.state.attribution.expect("a decision"),
    );
    assert!(!was.decision.candidates.is_empty());
    assert!(is.decision.candidates.is_empty());
    let credit = |one: &tributary_domain::install::Attribution| {
        let decision = &one.decision;
        (
            one.id,
            one.revision,
            decision.network,
            decision.click,
            decision.link,
            decision.campaign.clone(),
        )
    };
    assert_eq!(credit(&is), credit(&was));
    assert_eq!(after.events, before.events);
    assert_eq!(scenario.figures().await, figures);
    scenario.assert_rebuild_keeps_figures().await;
}

/// A device that returns records no second install, and its data is kept for another retention
/// period. A renewal keeps the device's credit.
pub async fn a_returning_device_records_no_second_install(store: &SharedStore) {
    let scenario = person_scenario(store).await;
    let first = scenario.events_of_device(device(DEVICE)).await["first"].clone();
    let installs = |log: &std::collections::BTreeMap<_, tributary_domain::event::Event>| {
        log.values().filter(|event| event.name == "install").count()
    };
    assert_eq!(sweep(&scenario, LAST_ACTIVE + 1).await, (1, 1));
    let tenant = scenario.tenant();
    let opened = tenant
        .call_configure(tenant.configure(DEVICE, 200_000))
        .await;
    assert!(!opened.is_first_open);
    assert_eq!(sweep(&scenario, 200_000).await, (0, 0));

    let renewal = NotificationMeaning::Payment(PaymentClaim::Continuation);
    scenario
        .notify(&billing_notification(
            tenant, "renewed", "sub-1", 700_000, renewal,
        ))
        .await;
    let log = scenario.events_of_device(device(DEVICE)).await;
    assert_eq!(installs(&log), 1);
    assert_eq!(log["renewed"].credit, first.credit);
    assert_eq!(log["first"].credit, first.credit);
    assert_eq!(
        sweep(&scenario, 300_000).await,
        (1, 0),
        "the renewal counts as activity"
    );
    assert_eq!(sweep(&scenario, 800_000).await, (1, 1));
    scenario.assert_rebuild_keeps_figures().await;
}
