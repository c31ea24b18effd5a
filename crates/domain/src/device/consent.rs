//! Consent of a device's user. An absent value means "not asked", not "no"; each network interprets
//! absence in its own way.

use super::AdvertisingId;

/// Consent as the SDK reported it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Consent {
    /// Whether networks may receive this user's data for advertising.
    pub ad_user_data: Option<bool>,
    /// Whether the data may be used for personalised ads.
    pub ad_personalization: Option<bool>,
    /// Answer to the platform's tracking prompt.
    pub tracking: Option<Tracking>,
}

/// Answer to the platform's tracking prompt, such as App Tracking Transparency on iOS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tracking {
    /// The user allowed tracking.
    Authorized,
    /// The user denied tracking.
    Denied,
    /// The user was not asked yet.
    NotDetermined,
}

crate::keywords! {
    Tracking {
        Authorized => "authorized",
        Denied => "denied",
        NotDetermined => "notDetermined",
    }
}

impl Consent {
    /// Merges a later report. Omitted values keep their previous value.
    #[must_use]
    pub fn updated(self, later: Self) -> Self {
        Self {
            ad_user_data: later.ad_user_data.or(self.ad_user_data),
            ad_personalization: later.ad_personalization.or(self.ad_personalization),
            tracking: later.tracking.or(self.tracking),
        }
    }

    /// Combines two reports that both apply: each field takes the stricter answer. A refusal is
    /// stricter than an unanswered question, and that is stricter than permission.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        Self {
            ad_user_data: stricter_answer(self.ad_user_data, other.ad_user_data),
            ad_personalization: stricter_answer(self.ad_personalization, other.ad_personalization),
            tracking: stricter_tracking(self.tracking, other.tracking),
        }
    }

    /// Returns whether the user answered any of the questions.
    pub fn is_reported(self) -> bool {
        self != Self::default()
    }

    /// Returns the advertising id that may be stored: none after tracking was denied, even if the
    /// SDK still sends one.
    pub fn permitted_advertising_id(
        self,
        advertising_id: Option<AdvertisingId>,
    ) -> Option<AdvertisingId> {
        advertising_id.filter(|_| self.tracking != Some(Tracking::Denied))
    }
}

/// Returns the stricter of two answers.
fn stricter_answer(one: Option<bool>, other: Option<bool>) -> Option<bool> {
    match (one, other) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// Returns the stricter of two answers to the tracking prompt. `NotDetermined` and no report allow
/// the same; `NotDetermined` comes first because it says more.
fn stricter_tracking(one: Option<Tracking>, other: Option<Tracking>) -> Option<Tracking> {
    let both = [one, other];
    let strictest = [
        Some(Tracking::Denied),
        Some(Tracking::NotDetermined),
        None,
        Some(Tracking::Authorized),
    ];
    strictest
        .into_iter()
        .find(|answer| both.contains(answer))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const YES: Option<bool> = Some(true);
    const NO: Option<bool> = Some(false);

    #[rstest]
    #[case::both_agree(YES, YES, YES)]
    #[case::refused_when_tracked(NO, YES, NO)]
    #[case::withdrawn_later(YES, NO, NO)]
    #[case::both_refuse(NO, NO, NO)]
    #[case::never_asked(None, None, None)]
    #[case::not_asked_when_tracked(None, YES, None)]
    #[case::not_asked_on_the_device(YES, None, None)]
    #[case::refused_before_asked(NO, None, NO)]
    #[case::refused_after_not_asked(None, NO, NO)]
    fn a_refusal_is_stricter_than_no_answer_and_than_permission(
        #[case] one: Option<bool>,
        #[case] other: Option<bool>,
        #[case] expected: Option<bool>,
    ) {
        let of = |ad_user_data, ad_personalization| Consent {
            ad_user_data,
            ad_personalization,
            tracking: None,
        };
        assert_eq!(of(one, YES).stricter(of(other, YES)), of(expected, YES));
        assert_eq!(of(YES, one).stricter(of(YES, other)), of(YES, expected));
    }

    #[rstest]
    #[case::both_agree(
        Some(Tracking::Authorized),
        Some(Tracking::Authorized),
        Some(Tracking::Authorized)
    )]
    #[case::denied_later(
        Some(Tracking::Authorized),
        Some(Tracking::Denied),
        Some(Tracking::Denied)
    )]
    #[case::authorized_later(
        Some(Tracking::NotDetermined),
        Some(Tracking::Authorized),
        Some(Tracking::NotDetermined)
    )]
    #[case::not_reported(None, Some(Tracking::Authorized), None)]
    #[case::not_reported_but_denied(None, Some(Tracking::Denied), Some(Tracking::Denied))]
    #[case::two_ways_of_no_answer(
        None,
        Some(Tracking::NotDetermined),
        Some(Tracking::NotDetermined)
    )]
    fn the_stricter_answer_to_the_prompt_holds(
        #[case] one: Option<Tracking>,
        #[case] other: Option<Tracking>,
        #[case] expected: Option<Tracking>,
    ) {
        let of = |tracking| Consent {
            tracking,
            ..Consent::default()
        };
        assert_eq!(of(one).stricter(of(other)), of(expected));
    }

    fn all() -> Vec<Consent> {
        let answers = [None, YES, NO];
        let trackings = [
            None,
            Some(Tracking::Authorized),
            Some(Tracking::Denied),
            Some(Tracking::NotDetermined),
        ];
        let mut all = Vec::new();
        for ad_user_data in answers {
            for ad_personalization in answers {
                for tracking in trackings {
                    all.push(Consent {
                        ad_user_data,
                        ad_personalization,
                        tracking,
                    });
                }
            }
        }
        all
    }

    /// Returns how strict each field is.
    fn strictness(consent: Consent) -> [u8; 3] {
        let answer = |answer| match answer {
            Some(false) => 2,
            None => 1,
            Some(true) => 0,
        };
        let tracking = match consent.tracking {
            Some(Tracking::Denied) => 2,
            Some(Tracking::NotDetermined) | None => 1,
            Some(Tracking::Authorized) => 0,
        };
        [
            answer(consent.ad_user_data),
            answer(consent.ad_personalization),
            tracking,
        ]
    }

    #[test]
    fn the_result_is_as_strict_as_the_stricter_one_in_any_order_and_grouping() {
        for one in all() {
            assert_eq!(one.stricter(one), one);
            for other in all() {
                let both = one.stricter(other);
                assert_eq!(both, other.stricter(one));
                let pairs = strictness(one).into_iter().zip(strictness(other));
                let expected: Vec<u8> = pairs.map(|(one, other)| one.max(other)).collect();
                assert_eq!(strictness(both).as_slice(), expected);
                for third in all() {
                    let grouped = one.stricter(other.stricter(third));
                    assert_eq!(both.stricter(third), grouped);
                }
            }
        }
    }

    #[test]
    fn a_later_report_changes_only_what_it_contains() {
        let first = Consent {
            ad_user_data: Some(true),
            ad_personalization: None,
            tracking: Some(Tracking::NotDetermined),
        };
        let later = Consent {
            tracking: Some(Tracking::Denied),
            ..Consent::default()
        };
        let expected = Consent {
            tracking: Some(Tracking::Denied),
            ..first
        };
        assert_eq!(first.updated(later), expected);
    }

    #[rstest]
    #[case::not_reported(None, true)]
    #[case::not_asked_yet(Some(Tracking::NotDetermined), true)]
    #[case::agreed(Some(Tracking::Authorized), true)]
    #[case::denied(Some(Tracking::Denied), false)]
    fn tracking_denied_means_no_advertising_id(
        #[case] tracking: Option<Tracking>,
        #[case] permitted: bool,
    ) {
        let consent = Consent {
            tracking,
            ..Consent::default()
        };
        let id = AdvertisingId::parse("6f9619ff-8b86-4011-b42d-00c04fc964ff");
        assert!(id.is_some());
        assert_eq!(consent.permitted_advertising_id(id).is_some(), permitted);
        assert_eq!(consent.permitted_advertising_id(None), None);
    }
}
