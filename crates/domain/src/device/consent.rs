//! What a person consented to. Absent is not a no: it is "not asked", and each network reads it its own way.

use super::AdvertisingId;

/// What the SDK reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Consent {
    /// Whether the networks may receive data about this person for advertising.
    pub ad_user_data: Option<bool>,
    /// Whether it may be used for personalised ads.
    pub ad_personalization: Option<bool>,
    /// The platform's own prompt.
    pub tracking: Option<Tracking>,
}

/// The answer to the platform's own prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tracking {
    /// Yes.
    Authorized,
    /// No.
    Denied,
    /// Not asked yet.
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
    /// What is known after a later call: what it says, and what it leaves out stays as it was.
    #[must_use]
    pub fn updated(self, later: Self) -> Self {
        Self {
            ad_user_data: later.ad_user_data.or(self.ad_user_data),
            ad_personalization: later.ad_personalization.or(self.ad_personalization),
            tracking: later.tracking.or(self.tracking),
        }
    }

    /// Returns the advertising id that may be kept: none after tracking was denied, even if the SDK still sends one.
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
    fn a_later_call_changes_only_what_it_says() {
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
