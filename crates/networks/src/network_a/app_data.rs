//! Device data for an app event.

use crate::facts::ConversionFacts;
use serde::Serialize;
use tributary_domain::device::{Device, Platform, Screen, Tracking};

/// Fixed number of `extinfo` values.
const EXTINFO_VALUES: usize = 16;

#[derive(Debug, Serialize)]
pub(super) struct AppData<'a> {
    advertiser_tracking_enabled: u8,
    application_tracking_enabled: u8,
    extinfo: [String; EXTINFO_VALUES],
    #[serde(skip_serializing_if = "Option::is_none")]
    vendor_id: Option<&'a str>,
}

impl<'a> AppData<'a> {
    /// Returns `None` if a required value is missing.
    pub(super) fn of(facts: ConversionFacts<'a>) -> Option<Self> {
        let device = facts.device()?;
        let extinfo = extinfo(device)?;
        let is_android = device.traits.platform == Platform::Android;
        let may_track = is_android || device.consent.tracking == Some(Tracking::Authorized);
        let app_may_track = device.consent.ad_personalization != Some(false);
        Some(Self {
            advertiser_tracking_enabled: u8::from(may_track),
            application_tracking_enabled: u8::from(app_may_track),
            extinfo,
            vendor_id: facts.idfv(),
        })
    }
}

/// Returns sixteen values in fixed positions, empty if unknown. The third and fourth are the app's
/// short and long versions, such as `3.2.0` and `3.2.0 (412)`. The carrier, cores, storage and time
/// zone abbreviation are never known.
fn extinfo(device: &Device) -> Option<[String; EXTINFO_VALUES]> {
    let traits = &device.traits;
    let platform = match traits.platform {
        Platform::Ios => "i2",
        Platform::Android => "a2",
        Platform::Web => return None,
    };
    let os_version = traits.os_version.clone().filter(|text| !text.is_empty())?;
    let known = |text: &Option<String>| text.clone().unwrap_or_default();
    let long_version = known(&traits.app_version);
    let short_version = long_version
        .split(' ')
        .next()
        .unwrap_or_default()
        .to_owned();
    let (width, height, density) = traits.screen.map(pixels).unwrap_or_default();
    let unknown = String::new;
    Some([
        platform.to_owned(),
        known(&traits.bundle_id),
        short_version,
        long_version,
        os_version,
        known(&traits.model),
        known(&traits.locale).replace('-', "_"),
        unknown(),
        unknown(),
        width,
        height,
        density,
        unknown(),
        unknown(),
        unknown(),
        known(&traits.timezone),
    ])
}

/// Returns width and height in pixels, in portrait orientation, and pixels per point.
fn pixels(screen: Screen) -> (String, String, String) {
    let (longer, shorter, hundredths) = screen.parts();
    let scaled = |points: u32| (u64::from(points) * u64::from(hundredths) / 100).to_string();
    let fraction = format!("{:02}", hundredths % 100);
    let density = match fraction.trim_end_matches('0') {
        "" => (hundredths / 100).to_string(),
        fraction => format!("{}.{fraction}", hundredths / 100),
    };
    (scaled(shorter), scaled(longer), density)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{device, sdk_event};
    use rstest::rstest;
    use tributary_domain::device::Consent;

    #[rstest]
    #[case(393, 852, 300, "1179 2556 3")]
    #[case(852, 393, 300, "1179 2556 3")]
    #[case(411, 914, 263, "1080 2403 2.63")]
    #[case(360, 800, 250, "900 2000 2.5")]
    fn converts_screens_to_pixels(
        #[case] width: u32,
        #[case] height: u32,
        #[case] scale: u32,
        #[case] is: &str,
    ) {
        let (width, height, density) = pixels(Screen::new(width, height, scale).unwrap());
        assert_eq!(format!("{width} {height} {density}"), is);
    }

    #[rstest]
    #[case::ios_yes(Platform::Ios, Some(Tracking::Authorized), 1)]
    #[case::ios_no(Platform::Ios, Some(Tracking::Denied), 0)]
    #[case::ios_not_asked(Platform::Ios, None, 0)]
    #[case::android(Platform::Android, None, 1)]
    fn reports_the_tracking_permission(
        #[case] platform: Platform,
        #[case] tracking: Option<Tracking>,
        #[case] expected: u8,
    ) {
        let mut conversion = sdk_event("install", "Lead");
        let mut device = device();
        device.traits.platform = platform;
        device.consent = Consent {
            tracking,
            ..Consent::default()
        };
        conversion.device = Some(device);
        let data = AppData::of(ConversionFacts(&conversion)).unwrap();
        assert_eq!(data.advertiser_tracking_enabled, expected);
        assert_eq!(data.application_tracking_enabled, 1);
    }

    #[test]
    fn app_data_requires_the_os_version() {
        let mut conversion = sdk_event("install", "Lead");
        conversion.device.as_mut().unwrap().traits.os_version = None;
        assert!(AppData::of(ConversionFacts(&conversion)).is_none());
    }
}
