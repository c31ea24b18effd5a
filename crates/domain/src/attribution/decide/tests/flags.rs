//! What is marked, and changes nothing.

use super::scene::*;
use crate::attribution::INSTALL_BURST_MAX;
use rstest::rstest;

fn model(scene: Scene, model: &str) -> Scene {
    scene.circumstances(|device| device.model = Some(model.to_owned()))
}

fn version(scene: Scene, version: &str) -> Scene {
    scene.circumstances(|device| device.os_version = Some(version.to_owned()))
}

fn installs(link: u8, count: u32) -> Scene {
    let mut scene = android().by_client(tap(1));
    scene.facts.installs_from_address = vec![(link_id(link), count)];
    scene
}

#[rstest]
#[case::nothing_is_odd(android().by_store(tap(1)), &[])]
#[case::a_referrer_without_googles_times(android().by_store_untimed(tap(1)), &["unverified_time"])]
#[case::the_devices_times_do_not_verify(
    android().by_store_untimed(tap(1)).device_times(HOUR, MINUTE),
    &["unverified_time"]
)]
#[case::one_of_googles_times_is_enough(
    android()
        .by_store_untimed(tap(1))
        .evidence(|evidence| evidence.times.click_at_server = Some(before_open(HOUR))),
    &[]
)]
#[case::a_click_that_the_app_names_needs_no_store(android().by_client(tap(1)), &[])]
#[case::nine_seconds_are_too_short(android().by_client(tap(1).before(9)), &["short_ctit"])]
#[case::ten_seconds_are_not(android().by_client(tap(1).before(10)), &[])]
#[case::an_iphone_on_android(model(android(), "iPhone15,2"), &["impossible_device"])]
#[case::an_emulator(model(android(), "sdk_gphone64_arm64"), &["impossible_device"])]
#[case::a_pixel_on_ios(model(ios(), "Pixel 8"), &["impossible_device"])]
#[case::a_simulator(model(ios(), "arm64"), &["impossible_device"])]
#[case::an_ipad_is_apples(model(ios(), "iPad14,3"), &[])]
#[case::an_unknown_model_is_not_odd(model(ios(), " "), &[])]
#[case::a_name_for_a_version(version(android(), "Tiramisu"), &["impossible_device"])]
#[case::a_version_with_a_name_in_front(version(android(), "Android 14"), &[])]
#[case::a_full_house_on_one_link(installs(1, INSTALL_BURST_MAX - 1), &[])]
#[case::one_install_too_many_on_one_link(installs(1, INSTALL_BURST_MAX), &["install_burst"])]
#[case::installs_of_another_link_are_its_own(installs(2, INSTALL_BURST_MAX), &[])]
fn a_flag_only_flags(#[case] scene: Scene, #[case] expected: &[&str]) {
    let decision = scene.decide();
    let flags: Vec<_> = decision.flags.iter().map(|flag| flag.as_str()).collect();
    assert_eq!(flags, expected);
    assert_eq!(decision.click.is_some(), !scene.facts.delivered.is_empty());
}
