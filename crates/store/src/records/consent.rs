//! A user's consent as a column.

use super::to_json;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use tributary_domain::device::{Consent, Tracking};

/// Consent in a device's row.
#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
pub(super) struct ConsentJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    ad_user_data: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ad_personalization: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tracking: Option<String>,
}

/// Returns the consent as JSON.
pub(super) fn consent_to_json(consent: Consent) -> String {
    to_json(&ConsentJson {
        ad_user_data: consent.ad_user_data,
        ad_personalization: consent.ad_personalization,
        tracking: consent.tracking.map(|answer| answer.as_str().to_owned()),
    })
}

impl From<ConsentJson> for Consent {
    fn from(json: ConsentJson) -> Self {
        Self {
            ad_user_data: json.ad_user_data,
            ad_personalization: json.ad_personalization,
            tracking: json.tracking.as_deref().and_then(Tracking::parse),
        }
    }
}

/// Returns the consent in an event's row: one character for each field, because most events have
/// one.
pub(super) fn consent_to_code(consent: Consent) -> Cow<'static, str> {
    let answer = |answer| match answer {
        Some(true) => 'y',
        Some(false) => 'n',
        None => '-',
    };
    let tracking = match consent.tracking {
        Some(Tracking::Authorized) => 'a',
        Some(Tracking::Denied) => 'd',
        Some(Tracking::NotDetermined) => 'u',
        None => '-',
    };
    let code = [
        answer(consent.ad_user_data),
        answer(consent.ad_personalization),
        tracking,
    ];
    code.into_iter().collect::<String>().into()
}

/// Reads the consent in an event's row. Returns `None` for an invalid code.
pub(super) fn consent_from_code(code: &str) -> Option<Consent> {
    let [ad_user_data, ad_personalization, tracking] = code.as_bytes() else {
        return None;
    };
    let answer = |code: u8| match code {
        b'y' => Some(Some(true)),
        b'n' => Some(Some(false)),
        b'-' => Some(None),
        _ => None,
    };
    Some(Consent {
        ad_user_data: answer(*ad_user_data)?,
        ad_personalization: answer(*ad_personalization)?,
        tracking: match tracking {
            b'a' => Some(Tracking::Authorized),
            b'd' => Some(Tracking::Denied),
            b'u' => Some(Tracking::NotDetermined),
            b'-' => None,
            _ => return None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::not_asked("---", None, None, None)]
    #[case::refused("nnd", Some(false), Some(false), Some(Tracking::Denied))]
    #[case::granted("yya", Some(true), Some(true), Some(Tracking::Authorized))]
    #[case::prompt_not_answered("y-u", Some(true), None, Some(Tracking::NotDetermined))]
    fn a_code_has_one_character_for_each_field(
        #[case] code: &str,
        #[case] ad_user_data: Option<bool>,
        #[case] ad_personalization: Option<bool>,
        #[case] tracking: Option<Tracking>,
    ) {
        let consent = Consent {
            ad_user_data,
            ad_personalization,
            tracking,
        };
        assert_eq!(consent_to_code(consent), code);
        assert_eq!(consent_from_code(code), Some(consent));
    }

    #[rstest]
    #[case::empty("")]
    #[case::short("yy")]
    #[case::long("yyaa")]
    #[case::unknown("yyx")]
    #[case::wide("éa")]
    fn an_invalid_code_is_not_read(#[case] code: &str) {
        assert_eq!(consent_from_code(code), None);
    }

    #[test]
    fn a_device_that_was_not_asked_has_an_empty_object() {
        assert_eq!(consent_to_json(Consent::default()), "{}");
    }
}
