//! Ids of clicks that an installed app reports. Repeated reports get the same id.
//!
//! An installed app handles its links itself and reports the URL with its next call. The SDK
//! repeats a call that got no response, which would count a second click. Recording an existing
//! click changes nothing. The id is therefore not random but derived from values that are the same
//! in every repeat. The hash is keyed, so that the id does not reveal the device.

use crate::access::Environment;
use crate::device::DeviceKey;
use crate::keyring::{Keyring, Purpose};
use crate::vocabulary::id::{AppId, ClickId};
use crate::vocabulary::time::Timestamp;

/// How long the same URL on the same device counts as the same click: longer than any SDK retries,
/// and short enough to count a later tap again. Intervals are aligned to the clock, so a repeat
/// across a boundary is counted twice.
pub const APP_OPEN_INTERVAL_MILLIS: i64 = 10 * 60 * 1000;
/// Length of an id without its timestamp, in bytes.
const HASH_BYTES: usize = 10;

/// Returns the id of the click on a URL that opened the app on a device. Its timestamp is the start
/// of the interval.
pub fn app_open_click_id(
    keyring: &Keyring,
    app: AppId,
    environment: Environment,
    device: &DeviceKey,
    url: &str,
    at: Timestamp,
) -> ClickId {
    let millis = at.as_millis();
    let begin = Timestamp::from_millis(millis - millis.rem_euclid(APP_OPEN_INTERVAL_MILLIS));
    let parts: [&[u8]; 4] = [
        app.as_bytes(),
        environment.as_str().as_bytes(),
        device.as_str().as_bytes(),
        url.as_bytes(),
    ];
    let tag = keyring.tag(Purpose::OpenedClick, &parts);
    let mut hash = [0; HASH_BYTES];
    hash.copy_from_slice(&tag[..HASH_BYTES]);
    ClickId::new(begin, hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    /// 2026-01-01T00:00:00Z, the start of an interval.
    const BEGIN: i64 = 1_767_225_600_000;
    const APP: [u8; 16] = [2; 16];
    const URL: &str = "https://t.example.com/c/spring?fbclid=1";

    fn id(secret: u8, app: [u8; 16], device: &str, url: &str, at: i64) -> ClickId {
        let device = DeviceKey::parse(device).unwrap();
        let keyring = Keyring::new([secret; 32]);
        let at = Timestamp::from_millis(at);
        let app = AppId::from_bytes(app);
        app_open_click_id(&keyring, app, Environment::Live, &device, url, at)
    }

    #[test]
    fn a_test_key_reports_another_click() {
        let device = DeviceKey::parse("d1").unwrap();
        let keyring = Keyring::new([1; 32]);
        let (app, at) = (AppId::from_bytes(APP), Timestamp::from_millis(BEGIN));
        let test = app_open_click_id(&keyring, app, Environment::Test, &device, URL, at);
        assert_ne!(test, id(1, APP, "d1", URL, BEGIN));
    }

    #[rstest]
    #[case::at_once(0)]
    #[case::later(5 * 60 * 1000)]
    #[case::at_the_end(APP_OPEN_INTERVAL_MILLIS - 1)]
    fn a_repeat_is_the_same_click(#[case] after: i64) {
        let first = id(1, APP, "d1", URL, BEGIN);
        assert_eq!(id(1, APP, "d1", URL, BEGIN + after), first);
        assert!(first >= ClickId::first_at(Timestamp::from_millis(BEGIN)));
    }

    #[rstest]
    #[case::the_next_interval(1, APP, "d1", URL, BEGIN + APP_OPEN_INTERVAL_MILLIS)]
    #[case::the_one_before(1, APP, "d1", URL, BEGIN - 1)]
    #[case::another_app(1, [3; 16], "d1", URL, BEGIN)]
    #[case::another_device(1, APP, "d2", URL, BEGIN)]
    #[case::another_url(1, APP, "d1", "https://t.example.com/c/spring?fbclid=2", BEGIN)]
    #[case::another_instance(9, APP, "d1", URL, BEGIN)]
    fn anything_else_is_another_click(
        #[case] secret: u8,
        #[case] app: [u8; 16],
        #[case] device: &str,
        #[case] url: &str,
        #[case] at: i64,
    ) {
        assert_ne!(
            id(secret, app, device, url, at),
            id(1, APP, "d1", URL, BEGIN)
        );
    }
}
