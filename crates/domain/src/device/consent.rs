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

    /// Returns the advertising id that may be stored: none after tracking was denied, even if the
    /// SDK still sends one.
    pub fn permitted_advertising_id(
        self,
        advertising_id: Option<AdvertisingId>,
    ) -> Option<AdvertisingId> {
        advertising_id.filter(|_| self.tracking != Some(Tracking::Denied))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

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
