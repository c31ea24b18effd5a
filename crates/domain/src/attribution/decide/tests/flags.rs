//! Flags, which do not change the decision.

use super::scene::*;
use crate::attestation::{AttestationFailure, AttestationOutcome};
use crate::attribution::INSTALL_BURST_MAX;
use rstest::rstest;

fn model(scene: Scene, model: &str) -> Scene {
    scene.fingerprint(|device| device.model = Some(model.to_owned()))
}

fn version(scene: Scene, version: &str) -> Scene {
    scene.fingerprint(|device| device.os_version = Some(version.to_owned()))
}

fn installs(link: u8, count: u32) -> Scene {
    let mut scene = android().through_client(tap(1));
    scene.facts.installs_from_address = vec![(link_id(link), count)];
    scene
}

fn attested(outcome: AttestationOutcome) -> Scene {
    android()
        .through_client(tap(1))
        .evidence(|evidence| evidence.attestation = Some(outcome))
}

#[rstest]
#[case::no_flags(android().through_store(tap(1)), &[])]
#[case::a_referrer_without_googles_times(android().through_store_without_times(tap(1)), &["unverified_time"])]
#[case::the_devices_times_are_unverified(
    android().through_store_without_times(tap(1)).device_times(HOUR, MINUTE),
    &["unverified_time"]
)]
#[case::one_of_googles_times_is_enough(
    android()
        .through_store_without_times(tap(1))
        .evidence(|evidence| evidence.times.click_at_server = Some(before_open(HOUR))),
    &[]
)]
#[case::a_click_id_from_the_app_needs_no_store_times(android().through_client(tap(1)), &[])]
#[case::nine_seconds_are_too_short(android().through_client(tap(1).before(9)), &["short_ctit"])]
#[case::ten_seconds_are_not(android().through_client(tap(1).before(10)), &[])]
#[case::an_iphone_on_android(model(android(), "iPhone15,2"), &["impossible_device"])]
#[case::an_emulator(model(android(), "sdk_gphone64_arm64"), &["impossible_device"])]
#[case::a_pixel_on_ios(model(ios(), "Pixel 8"), &["impossible_device"])]
#[case::a_simulator(model(ios(), "arm64"), &["impossible_device"])]
#[case::an_ipad_is_apples(model(ios(), "iPad14,3"), &[])]
#[case::an_unknown_model_is_not_flagged(model(ios(), " "), &[])]
#[case::a_name_for_a_version(version(android(), "Tiramisu"), &["impossible_device"])]
#[case::a_version_with_a_name_in_front(version(android(), "Android 14"), &[])]
#[case::the_limit_on_one_link(installs(1, INSTALL_BURST_MAX - 1), &[])]
#[case::one_install_too_many_on_one_link(installs(1, INSTALL_BURST_MAX), &["install_burst"])]
#[case::installs_of_another_link_do_not_count(installs(2, INSTALL_BURST_MAX), &[])]
#[case::a_proven_app(attested(AttestationOutcome::Verified), &[])]
#[case::no_proof(attested(AttestationOutcome::Missing), &["attestation_missing"])]
#[case::a_forged_proof(
    attested(AttestationOutcome::Failed(AttestationFailure::UntrustedCertificate)),
    &["attestation_failed"]
)]
fn flags_do_not_change_the_decision(#[case] scene: Scene, #[case] expected: &[&str]) {
    let decision = scene.decide();
    let flags: Vec<_> = decision.flags.iter().map(|flag| flag.as_str()).collect();
    assert_eq!(flags, expected);
    assert_eq!(decision.click.is_some(), !scene.facts.delivered.is_empty());
}
