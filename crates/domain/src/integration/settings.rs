//! Settings and credentials for each network. Credentials are write-only.

use super::{Integration, Network};
use crate::vocabulary::fault::{FaultCode, Problem};
use crate::vocabulary::text::{check_length, reject_nul};
use std::collections::BTreeMap;

/// Maximum length of a text setting.
const SETTING_CHARS_MAX: usize = 255;
/// Maximum length of a credential. A service account key file is the longest one.
pub const CREDENTIAL_CHARS_MAX: usize = 8_192;
/// Maximum number of conversion actions.
pub const CONVERSION_ACTIONS_MAX: usize = 100;
/// Minimum length of a credential whose last four characters are shown as a hint.
const HINT_FROM_CHARS: usize = 12;
/// Largest allowed maximum event age in hours: the longest window of the four networks.
const EVENT_AGE_HOURS_MAX: i64 = 90 * 24;

/// Value of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingValue {
    /// Text.
    Text(String),
    /// Yes or no.
    Flag(bool),
    /// A whole number.
    Number(i64),
    /// A map of names to ids.
    Map(BTreeMap<String, String>),
}

/// Values that a setting accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingKind {
    /// Digits, such as a pixel id.
    Digits,
    /// Account id in digits. Dashes are removed, because people paste them.
    AccountId,
    /// Letters, digits, `_` and `-`.
    Code,
    /// A version such as `v26.0`.
    ApiVersion,
    /// A version such as `v26`.
    MajorVersion,
    /// Text without white space.
    Token,
    /// Yes or no.
    Flag,
    /// One of these values.
    Choice(&'static [&'static str]),
    /// A whole number in this range.
    Number(i64, i64),
    /// A map of names to digits.
    DigitsMap,
}

/// Definition of a setting.
#[derive(Debug, Clone, Copy)]
pub struct SettingSpec {
    /// Name in `settings`.
    pub name: &'static str,
    /// Values that the setting accepts.
    pub kind: SettingKind,
    /// Default value.
    pub default: SettingDefault,
}

/// Default of a setting.
#[derive(Debug, Clone, Copy)]
pub enum SettingDefault {
    /// No default.
    None,
    /// Yes or no.
    Flag(bool),
    /// Text.
    Text(&'static str),
    /// An empty map.
    EmptyMap,
}

/// Definition of a credential.
#[derive(Debug, Clone, Copy)]
pub struct CredentialSpec {
    /// Name in `credentials`.
    pub name: &'static str,
}

const fn setting(name: &'static str, kind: SettingKind, default: SettingDefault) -> SettingSpec {
    SettingSpec {
        name,
        kind,
        default,
    }
}

const COMMON: [SettingSpec; 4] = [
    setting("testMode", SettingKind::Flag, SettingDefault::Flag(false)),
    // In hours.
    setting(
        "maxEventAge",
        SettingKind::Number(1, EVENT_AGE_HOURS_MAX),
        SettingDefault::None,
    ),
    setting(
        "forwardProbabilistic",
        SettingKind::Flag,
        SettingDefault::Flag(false),
    ),
    setting("webEventId", SettingKind::Flag, SettingDefault::Flag(false)),
];
const OF_A: &[SettingSpec] = &[
    setting("pixelId", SettingKind::Digits, SettingDefault::None),
    setting(
        "apiVersion",
        SettingKind::ApiVersion,
        SettingDefault::Text("v26.0"),
    ),
    setting(
        "sdkEventMode",
        SettingKind::Choice(&["website", "app"]),
        SettingDefault::Text("website"),
    ),
    setting("testEventCode", SettingKind::Code, SettingDefault::None),
    setting(
        "limitedDataUse",
        SettingKind::Flag,
        SettingDefault::Flag(false),
    ),
];
const OF_B: &[SettingSpec] = &[
    setting(
        "operatingAccountId",
        SettingKind::AccountId,
        SettingDefault::None,
    ),
    setting(
        "loginAccountId",
        SettingKind::AccountId,
        SettingDefault::None,
    ),
    setting(
        "conversionActions",
        SettingKind::DigitsMap,
        SettingDefault::EmptyMap,
    ),
    setting("clientId", SettingKind::Token, SettingDefault::None),
    setting(
        "userDataEnabled",
        SettingKind::Flag,
        SettingDefault::Flag(false),
    ),
    setting(
        "landingPageDeviceInfo",
        SettingKind::Flag,
        SettingDefault::Flag(false),
    ),
    setting(
        "sdkEventSource",
        SettingKind::Choice(&["APP", "WEB"]),
        SettingDefault::Text("APP"),
    ),
];
const OF_C: &[SettingSpec] = &[
    setting("pixelCode", SettingKind::Code, SettingDefault::None),
    setting("testEventCode", SettingKind::Code, SettingDefault::None),
];
const OF_D: &[SettingSpec] = &[setting("pixelId", SettingKind::Code, SettingDefault::None)];

/// Returns the settings for a network: its own, then the common ones.
pub fn settings_of(network: Network) -> impl Iterator<Item = &'static SettingSpec> {
    let own = match network {
        Network::A => OF_A,
        Network::B => OF_B,
        Network::C => OF_C,
        Network::D => OF_D,
    };
    own.iter().chain(COMMON.iter())
}

/// Returns the credentials for a network.
pub const fn credentials_of(network: Network) -> &'static [CredentialSpec] {
    match network {
        Network::A => &[
            CredentialSpec {
                name: "accessToken",
            },
            CredentialSpec { name: "appSecret" },
        ],
        Network::B => &[
            CredentialSpec {
                name: "clientSecret",
            },
            CredentialSpec {
                name: "refreshToken",
            },
            CredentialSpec {
                name: "serviceAccountKey",
            },
        ],
        Network::C => &[CredentialSpec {
            name: "accessToken",
        }],
        Network::D => &[CredentialSpec { name: "apiKey" }],
    }
}

/// The setting with the code that marks test events.
const TEST_EVENT_CODE: &str = "testEventCode";

/// Returns required settings and credentials that are missing.
pub(super) fn missing(integration: &Integration) -> Vec<&'static str> {
    let has_setting = |name: &&&str| integration.settings.contains_key(**name);
    let has_credential = |name: &&&str| integration.credentials.contains_key(**name);
    let (settings, credentials): (&[&str], &[&str]) = match integration.network {
        Network::A => (&["pixelId"], &["accessToken"]),
        Network::B if integration.credentials.contains_key("serviceAccountKey") => {
            (&["operatingAccountId"], &[])
        }
        Network::B => (
            &["operatingAccountId", "clientId"],
            &["clientSecret", "refreshToken"],
        ),
        Network::C => (&["pixelCode"], &["accessToken"]),
        Network::D => (&["pixelId"], &["apiKey"]),
    };
    let settings = settings.iter().filter(|name| !has_setting(name));
    let credentials = credentials.iter().filter(|name| !has_credential(name));
    // Without a code, the network would treat test events like any other. Meta counts them even
    // with a code.
    let needs_code = matches!(integration.network, Network::A | Network::C)
        && integration.flag("testMode")
        && integration.text(TEST_EVENT_CODE).is_none();
    let code = [TEST_EVENT_CODE].into_iter().filter(|_| needs_code);
    settings.chain(credentials).copied().chain(code).collect()
}

impl SettingKind {
    /// Checks a text for this kind of setting.
    pub fn text(self, text: &str) -> Result<SettingValue, Problem> {
        let without_dashes;
        let text = if self == Self::AccountId {
            without_dashes = text.replace('-', "");
            &without_dashes
        } else {
            text
        };
        let fits = match self {
            Self::Digits | Self::AccountId => text.bytes().all(|byte| byte.is_ascii_digit()),
            Self::Code => text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')),
            Self::ApiVersion => is_api_version(text),
            Self::MajorVersion => is_api_version(&format!("{text}.0")),
            Self::Token => text.chars().all(|c| !c.is_whitespace() && !c.is_control()),
            Self::Choice(choices) => choices.contains(&text),
            Self::Flag | Self::Number(..) | Self::DigitsMap => false,
        };
        check_length(text, 1, SETTING_CHARS_MAX)?;
        if fits {
            Ok(SettingValue::Text(text.to_owned()))
        } else {
            Err(Problem::new(FaultCode::InvalidFormat, self.expectation()))
        }
    }

    /// Checks a number for this kind of setting.
    pub fn number(self, number: i64) -> Result<SettingValue, Problem> {
        match self {
            Self::Number(min, max) if (min..=max).contains(&number) => {
                Ok(SettingValue::Number(number))
            }
            _ => Err(Problem::new(FaultCode::OutOfRange, self.expectation())),
        }
    }

    /// Checks a map for this kind of setting.
    pub fn map(self, map: BTreeMap<String, String>) -> Result<SettingValue, Problem> {
        if map.len() > CONVERSION_ACTIONS_MAX {
            let message = format!("Must have at most {CONVERSION_ACTIONS_MAX} entries.");
            return Err(Problem::new(FaultCode::TooLong, message));
        }
        for (name, number) in &map {
            crate::vocabulary::text::parse_event_name(name)?;
            Self::Digits.text(number)?;
        }
        Ok(SettingValue::Map(map))
    }

    /// Returns a message that describes valid values.
    pub fn expectation(self) -> String {
        match self {
            Self::Digits => "Must be digits only.".to_owned(),
            Self::AccountId => "Must be digits, with or without dashes.".to_owned(),
            Self::Code => "Must be letters, digits, _ and - only.".to_owned(),
            Self::ApiVersion => "Must be a version such as v26.0.".to_owned(),
            Self::MajorVersion => "Must be a version such as v26.".to_owned(),
            Self::Token => "Must not contain white space.".to_owned(),
            Self::Flag => "Must be true or false.".to_owned(),
            Self::Choice(choices) => format!("Must be one of {}.", choices.join(", ")),
            Self::Number(min, max) => format!("Must be a whole number from {min} to {max}."),
            Self::DigitsMap => "Must be an object that maps names to numeric ids.".to_owned(),
        }
    }
}

fn is_api_version(text: &str) -> bool {
    let digits =
        |part: &str| (1..=3).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
    let parts = text.strip_prefix('v').and_then(|rest| rest.split_once('.'));
    parts.is_some_and(|(major, minor)| digits(major) && digits(minor))
}

/// Checks a credential and returns the hint to display.
pub fn check_credential(text: &str) -> Result<Option<String>, Problem> {
    reject_nul(text)?;
    check_length(text, 1, CREDENTIAL_CHARS_MAX)?;
    let chars: Vec<char> = text.trim_end().chars().collect();
    // A service account key ends in `}`, which is not a useful hint.
    let showable = |tail: &[char]| tail.iter().all(char::is_ascii_alphanumeric);
    let tail = chars.len().checked_sub(4).map(|start| &chars[start..]);
    Ok(tail
        .filter(|tail| chars.len() >= HINT_FROM_CHARS && showable(tail))
        .map(|tail| tail.iter().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forwarding::queue::QueueState;
    use crate::integration::{Credential, IntegrationStatus};
    use crate::keyring::seal::SealedSecret;
    use crate::vocabulary::id::AppId;
    use rstest::rstest;

    #[rstest]
    #[case(SettingKind::Digits, "1234567890", true)]
    #[case(SettingKind::Digits, "12a", false)]
    #[case(SettingKind::Digits, "123-456", false)]
    #[case(SettingKind::AccountId, "123-456-7890", true)]
    #[case(SettingKind::AccountId, "--", false)]
    #[case(SettingKind::Digits, "", false)]
    #[case(SettingKind::Code, "TEST_12-a", true)]
    #[case(SettingKind::Code, "a b", false)]
    #[case(SettingKind::ApiVersion, "v26.0", true)]
    #[case(SettingKind::ApiVersion, "26.0", false)]
    #[case(SettingKind::ApiVersion, "v26", false)]
    #[case(SettingKind::ApiVersion, "v26.0/../x", false)]
    #[case(SettingKind::Token, "abc.apps.example", true)]
    #[case(SettingKind::Token, "a\tb", false)]
    #[case(SettingKind::Choice(&["APP", "WEB"]), "WEB", true)]
    #[case(SettingKind::Choice(&["APP", "WEB"]), "web", false)]
    fn text_settings(#[case] kind: SettingKind, #[case] text: &str, #[case] accepted: bool) {
        assert_eq!(kind.text(text).is_ok(), accepted);
    }

    #[rstest]
    #[case::long("EAAB0123456789f9f2c", Some("9f2c"))]
    #[case::too_short_to_show("secret9f2c", None)]
    #[case::key_file("{\"private_key\": \"…\"}\n", None)]
    fn hints(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(check_credential(text).unwrap().as_deref(), expected);
    }

    fn with(network: Network, settings: &[&str], credentials: &[&str]) -> Integration {
        let mut integration = Integration::new(AppId::from_bytes([1; 16]), network);
        for name in settings {
            let value = SettingValue::Text("1".to_owned());
            integration.settings.insert((*name).to_owned(), value);
        }
        for name in credentials {
            let credential = Credential {
                sealed: SealedSecret::from_bytes(vec![1]),
                hint: None,
            };
            integration
                .credentials
                .insert((*name).to_owned(), credential);
        }
        integration
    }

    fn with_test_mode(mut integration: Integration) -> Integration {
        let on = SettingValue::Flag(true);
        integration.settings.insert("testMode".to_owned(), on);
        integration
    }

    #[rstest]
    #[case::a_without_settings(with(Network::A, &[], &[]), IntegrationStatus::NotConfigured)]
    #[case::a(with(Network::A, &["pixelId"], &["accessToken"]), IntegrationStatus::Paused)]
    #[case::b_needs_credentials(with(Network::B, &["operatingAccountId"], &[]), IntegrationStatus::NotConfigured)]
    #[case::b_by_refresh_token(
        with(Network::B, &["operatingAccountId", "clientId"], &["clientSecret", "refreshToken"]),
        IntegrationStatus::Paused
    )]
    #[case::b_by_service_account(
        with(Network::B, &["operatingAccountId"], &["serviceAccountKey"]),
        IntegrationStatus::Paused
    )]
    #[case::test_mode_of_a_needs_a_code(
        with_test_mode(with(Network::A, &["pixelId"], &["accessToken"])),
        IntegrationStatus::NotConfigured
    )]
    #[case::test_mode_of_d_needs_no_code(with_test_mode(with(Network::D, &["pixelId"], &["apiKey"])), IntegrationStatus::Paused)]
    #[case::c(with(Network::C, &["pixelCode"], &["accessToken"]), IntegrationStatus::Paused)]
    #[case::d(with(Network::D, &["pixelId"], &["apiKey"]), IntegrationStatus::Paused)]
    fn required_settings_and_credentials(
        #[case] integration: Integration,
        #[case] status: IntegrationStatus,
    ) {
        let queue = QueueState::default();
        assert_eq!(integration.status(&queue).0, status);
        let enabled = Integration {
            enabled: true,
            ..integration
        };
        let complete = status != IntegrationStatus::NotConfigured;
        assert_eq!(
            enabled.status(&queue).0 == IntegrationStatus::Active,
            complete
        );
        assert_eq!(enabled.is_active(), complete);
    }
}
