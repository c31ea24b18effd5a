//! What a device and a person are known by.

use crate::device::Platform;
use crate::device::consent::{Consent, Tracking};
use crate::vocabulary::fault::{FaultCode, Problem};
use crate::vocabulary::text::check_external_id;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// An `ANDROID_ID` that a whole series of phones shared.
const SHARED_ANDROID_ID: &str = "9774d56d682e549c";
/// Letters of an `ANDROID_ID`. A shorter id of one letter is somebody's own numbering.
const ANDROID_ID_CHARS: usize = 16;
/// Hex digits of a SHA-256 hash.
const HASH_DIGITS: usize = 64;
/// Letters of a UUID with its hyphens.
const UUID_CHARS: usize = 36;

/// The id that the SDK made for a device, or took from it. Two keys are equal when they identify one device, however the
/// app spelled them.
#[derive(Clone)]
pub struct DeviceKey {
    /// What identifies the device: a UUID in lower case, any other id as it was sent.
    id: String,
    /// What the app sent, if that differs.
    spelling: Option<String>,
}

impl PartialEq for DeviceKey {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for DeviceKey {}

impl PartialOrd for DeviceKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for DeviceKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.id.cmp(&other.id)
    }
}

impl Hash for DeviceKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl DeviceKey {
    /// Reads a device id. One that many devices share would merge their people into one, so it is refused.
    ///
    /// A UUID identifies its device in lower case: some platforms write theirs in capitals, and the case of a UUID must
    /// not make two devices of one. Any other id is kept as it is.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let key = Self::parse_any(text)?;
        if key.is_placeholder() {
            return Err(Problem::new(
                FaultCode::NotAllowed,
                "This id is shared by many devices: make a random UUID and keep it.",
            ));
        }
        Ok(key)
    }

    /// Reads a device id of a website, where a paid order is not refused because of it. See [`Self::is_placeholder`].
    pub fn parse_any(text: &str) -> Result<Self, Problem> {
        let text = check_external_id(text)?;
        let id = if is_uuid(text) {
            text.to_ascii_lowercase()
        } else {
            text.to_owned()
        };
        Ok(Self::stored_as(id, Some(text.to_owned())))
    }

    /// Whether many devices share this id: all zeros or another single letter, or a known faulty `ANDROID_ID`. It
    /// identifies no device, so it joins no events and no network is told of it.
    pub fn is_placeholder(&self) -> bool {
        let mut letters = self.id.chars().filter(|c| *c != '-');
        let first = letters.next();
        let one_letter = self.id.len() >= ANDROID_ID_CHARS && letters.all(|c| Some(c) == first);
        self.id == SHARED_ANDROID_ID || one_letter
    }

    /// An id that was accepted once.
    pub const fn stored(id: String) -> Self {
        Self { id, spelling: None }
    }

    /// An id that was accepted once, and how the app spelled it.
    pub fn stored_as(id: String, spelling: Option<String>) -> Self {
        let spelling = spelling.filter(|spelling| *spelling != id);
        Self { id, spelling }
    }

    /// What identifies the device.
    pub fn as_str(&self) -> &str {
        &self.id
    }

    /// What identifies the device, to be kept.
    pub fn into_string(self) -> String {
        self.id
    }

    /// What the app sent. Networks get it: a hash of another spelling would not match theirs.
    pub fn spelling(&self) -> &str {
        self.spelling.as_deref().unwrap_or(&self.id)
    }

    /// What the app sent, if that differs from what identifies the device.
    pub fn other_spelling(&self) -> Option<&str> {
        self.spelling.as_deref()
    }
}

/// Whether a text is written as a UUID: 8-4-4-4-12 hexadecimal digits, in any case.
fn is_uuid(text: &str) -> bool {
    text.len() == UUID_CHARS
        && text.char_indices().all(|(at, c)| match at {
            8 | 13 | 18 | 23 => c == '-',
            _ => c.is_ascii_hexdigit(),
        })
}

/// The app's own id of a person.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UserKey(String);

impl UserKey {
    /// Reads a user id.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        check_external_id(text).map(|text| Self(text.to_owned()))
    }

    /// An id that was accepted once.
    pub const fn stored(text: String) -> Self {
        Self(text)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, to be kept.
    pub fn into_string(self) -> String {
        self.0
    }
}

/// An advertising id (IDFA or GAID) that is not all zeros, in lower case.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AdvertisingId(String);

impl AdvertisingId {
    /// Reads one. All zeros is how both platforms say no; anything that is no UUID is dropped alike.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        let says_no = text.chars().all(|c| matches!(c, '0' | '-'));
        (is_uuid(&text) && !says_no).then_some(Self(text))
    }

    /// An id that was accepted once.
    pub const fn stored(text: String) -> Self {
        Self(text)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it may be compared with a click's. Apple's needs a yes to its prompt; on Android a device
    /// that was not told no gives its id.
    pub fn may_match(platform: Platform, consent: Consent) -> bool {
        match platform {
            Platform::Ios => consent.tracking == Some(Tracking::Authorized),
            Platform::Android => consent.tracking != Some(Tracking::Denied),
            Platform::Web => false,
        }
    }
}

/// Hashes of a person's address and number: lower-case hex SHA-256, made on the device.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ContactHashes {
    /// Of the e-mail address.
    pub email: Option<String>,
    /// Of the e-mail address without dots and suffix where it is Google's.
    pub email_google: Option<String>,
    /// Of the phone number's digits.
    pub phone: Option<String>,
    /// Of `+` and the phone number's digits.
    pub phone_e164: Option<String>,
}

impl ContactHashes {
    /// Reads one hash. Clear text is refused: it has no business here.
    pub fn parse_hash(text: &str) -> Result<String, Problem> {
        if text.len() == HASH_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(text.to_ascii_lowercase());
        }
        Err(Problem::new(
            FaultCode::InvalidFormat,
            "Must be a SHA-256 hash, 64 hexadecimal digits, made on the device. Clear text is not taken.",
        ))
    }

    /// What is known after a later call: what it gives replaces, what it leaves out stays. A second form of an address or
    /// number goes with the first: it is left out where it would be the same, or cannot be told.
    #[must_use]
    pub fn updated(self, later: Self) -> Self {
        let form = |later: Option<String>, before: Option<String>, is_replaced: bool| {
            later.or(before.filter(|_| !is_replaced))
        };
        Self {
            email_google: form(
                later.email_google,
                self.email_google,
                later.email.is_some() && later.email != self.email,
            ),
            phone_e164: form(
                later.phone_e164,
                self.phone_e164,
                later.phone.is_some() && later.phone != self.phone,
            ),
            email: later.email.or(self.email),
            phone: later.phone.or(self.phone),
        }
    }
}

/// People's ids do not belong in logs, so only the type is shown.
macro_rules! hidden {
    ($($type:ident)*) => {$(
        impl std::fmt::Debug for $type {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(concat!(stringify!($type), "(…)"))
            }
        }
    )*};
}

hidden! { DeviceKey UserKey AdvertisingId ContactHashes }

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use std::collections::HashSet;

    fn matching(texts: [&str; 4]) -> ContactHashes {
        let [email, email_google, phone, phone_e164] =
            texts.map(|text| (!text.is_empty()).then(|| text.to_owned()));
        ContactHashes {
            email,
            email_google,
            phone,
            phone_e164,
        }
    }

    #[rstest]
    #[case::another_address(["a", "g", "1", "+1"], ["b", "", "", ""], ["b", "", "1", "+1"])]
    #[case::another_number(["a", "g", "1", "+1"], ["", "", "2", ""], ["a", "g", "2", ""])]
    #[case::the_same_again(["a", "g", "1", "+1"], ["a", "", "1", ""], ["a", "g", "1", "+1"])]
    #[case::both_forms(["a", "g", "", ""], ["b", "h", "", ""], ["b", "h", "", ""])]
    #[case::nothing(["a", "g", "1", "+1"], ["", "", "", ""], ["a", "g", "1", "+1"])]
    fn hashes_of_a_later_call(
        #[case] before: [&str; 4],
        #[case] later: [&str; 4],
        #[case] after: [&str; 4],
    ) {
        // Not by assert_eq: what is told of a person's hashes is nothing.
        assert!(matching(before).updated(matching(later)) == matching(after));
    }

    #[rstest]
    #[case::uuid("6f9619ff-8b86-4011-b42d-00c04fc964ff", None)]
    #[case::android("3f2504e04f8941d3", None)]
    #[case::any_text("device 1", None)]
    #[case::empty("", Some(FaultCode::TooShort))]
    #[case::nul("a\0b", Some(FaultCode::InvalidCharacter))]
    #[case::shared_by_a_series("9774d56d682e549c", Some(FaultCode::NotAllowed))]
    #[case::all_zeros("00000000-0000-0000-0000-000000000000", Some(FaultCode::NotAllowed))]
    #[case::one_letter("ffffffffffffffff", Some(FaultCode::NotAllowed))]
    #[case::one_letter_in_two_cases(
        "FFFFFFFF-ffff-FFFF-ffff-FFFFFFFFFFFF",
        Some(FaultCode::NotAllowed)
    )]
    fn device_ids(#[case] text: &str, #[case] expected: Option<FaultCode>) {
        assert_eq!(
            DeviceKey::parse(text).err().map(|problem| problem.code),
            expected
        );
        // A website's order is accepted with it, and marked.
        let marked = DeviceKey::parse_any(text).is_ok_and(|key| key.is_placeholder());
        assert_eq!(marked, expected == Some(FaultCode::NotAllowed));
    }

    #[rstest]
    #[case::uuid(
        "6F9619FF-8B86-4011-B42D-00C04FC964FF",
        "6f9619ff-8b86-4011-b42d-00c04fc964ff"
    )]
    #[case::uuid_in_both_cases(
        "6f9619FF-8b86-4011-B42d-00c04fc964ff",
        "6f9619ff-8b86-4011-b42d-00c04fc964ff"
    )]
    #[case::uuid_without_hyphens(
        "6F9619FF8B864011B42D00C04FC964FF",
        "6F9619FF8B864011B42D00C04FC964FF"
    )]
    #[case::uuid_in_braces(
        "{6F9619FF-8B86-4011-B42D-00C04FC964FF}",
        "{6F9619FF-8B86-4011-B42D-00C04FC964FF}"
    )]
    #[case::no_hexadecimal_digit(
        "6F9619FF-8B86-4011-B42D-00C04FC964FG",
        "6F9619FF-8B86-4011-B42D-00C04FC964FG"
    )]
    #[case::any_text("Device 1", "Device 1")]
    fn the_case_of_a_uuid_makes_no_second_device(#[case] sent: &str, #[case] kept: &str) {
        let key = DeviceKey::parse(sent).unwrap();
        assert_eq!((key.as_str(), key.spelling()), (kept, sent));
        assert_eq!(key.other_spelling(), (kept != sent).then_some(sent));
        // It is one device in comparisons, in the order of locks and in look-ups.
        let stored = DeviceKey::stored(kept.to_owned());
        assert!(key == stored && key.cmp(&stored).is_eq());
        assert!(HashSet::from([key]).contains(&stored));
    }

    #[test]
    fn a_foreign_id_has_at_most_255_bytes() {
        let text = |bytes: usize| format!("a{}", "b".repeat(bytes - 1));
        assert!(DeviceKey::parse(&text(255)).is_ok() && DeviceKey::parse(&text(256)).is_err());
        assert!(UserKey::parse(&text(255)).is_ok() && UserKey::parse(&text(256)).is_err());
    }

    #[rstest]
    #[case::upper_case("6F9619FF-8B86-4011-B42D-00C04FC964FF", true)]
    #[case::zeros("00000000-0000-0000-0000-000000000000", false)]
    #[case::short("6f9619ff", false)]
    #[case::misplaced_hyphen("6f9619f-f8b86-4011-b42d-00c04fc964ff", false)]
    #[case::macro_unexpanded("__IDFA__", false)]
    fn advertising_ids(#[case] text: &str, #[case] taken: bool) {
        let found = AdvertisingId::parse(text);
        assert_eq!(found.is_some(), taken);
        if let Some(id) = found {
            assert_eq!(id.as_str(), text.to_ascii_lowercase());
        }
    }

    #[rstest]
    #[case::ios_yes(Platform::Ios, Some(Tracking::Authorized), true)]
    #[case::ios_silent(Platform::Ios, None, false)]
    #[case::ios_not_asked(Platform::Ios, Some(Tracking::NotDetermined), false)]
    #[case::android_silent(Platform::Android, None, true)]
    #[case::android_no(Platform::Android, Some(Tracking::Denied), false)]
    #[case::web(Platform::Web, Some(Tracking::Authorized), false)]
    fn who_may_be_compared(
        #[case] platform: Platform,
        #[case] tracking: Option<Tracking>,
        #[case] expected: bool,
    ) {
        let consent = Consent {
            tracking,
            ..Consent::default()
        };
        assert_eq!(AdvertisingId::may_match(platform, consent), expected);
    }

    #[test]
    fn clear_text_is_not_taken_for_a_hash() {
        assert!(ContactHashes::parse_hash("foo@bar.com").is_err());
        assert!(ContactHashes::parse_hash("15551234567").is_err());
        let upper = "0C7E6A405862E402EB76A70F8A26FC732D07C32931E9FAE9AB1582911D2E8A3B";
        assert_eq!(
            ContactHashes::parse_hash(upper),
            Ok(upper.to_ascii_lowercase())
        );
    }

    #[test]
    fn a_person_does_not_print() {
        let matching = ContactHashes {
            email: Some("secret".to_owned()),
            ..ContactHashes::default()
        };
        assert_eq!(format!("{matching:?}"), "Matching(…)");
        assert_eq!(
            format!("{:?}", UserKey::stored("secret".to_owned())),
            "UserKey(…)"
        );
    }
}
