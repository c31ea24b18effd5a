//! The data about an event that an adapter may send to a network.

use super::delivery::PendingDelivery;
use crate::click::Click;
use crate::device::{Consent, ContactHashes, Device, DeviceKey, Tracking, UserKey};
use crate::event::{Event, EventSource};
use crate::install::DeviceState;
use crate::ledger::{COUNTABLE_USD_MAX, UncountedReason};
use crate::vocabulary::digest::{Digest, hex};
use crate::vocabulary::id::DeliveryId;
use crate::vocabulary::money::Amount;
use crate::vocabulary::time::Timestamp;

/// Event name of a payment.
pub(super) const PURCHASE: &str = "purchase";
/// Event name of a payment if a billing provider reports it. The same event from the SDK does not
/// prove a payment.
const SUBSCRIBE: &str = "subscribe";

/// An event with all data that a network may receive. It is built before each attempt, so that
/// consent and identity changes take effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversion {
    /// The delivery to send.
    pub delivery: DeliveryId,
    /// Deduplication id sent to the network; the same for every attempt.
    pub dedup_id: String,
    /// Event name at the network.
    pub network_event: String,
    /// The event.
    pub event: Event,
    /// Page URL: for a web event its own page, otherwise the public link URL without its query.
    pub page_url: Option<String>,
    /// The credited click.
    pub click: Option<Click>,
    /// A network's click id that arrived without a recorded click, as parameter name (`gclid`) and
    /// value.
    pub network_click_id: Option<(String, String)>,
    /// The device, if it called `configure`, with the consent that holds for the event.
    pub device: Option<Device>,
    /// Hashes of the user's email address and phone number.
    pub matching: ContactHashes,
    /// The app's user id: the event's own or, for app events, the one that the device was
    /// identified with.
    pub user: Option<UserKey>,
}

/// What the user allows networks to do with the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// The user was not asked.
    Unknown,
    /// Any use, including personalised ads.
    Allowed,
    /// Measurement only, no personalised ads.
    NotPersonalized,
    /// The event must not be sent.
    Refused,
}

impl Sharing {
    /// Derives the permission from the user's consent. Denying the platform's tracking prompt means
    /// no personalised ads.
    pub fn of(consent: Consent) -> Self {
        let personalized = match consent.tracking {
            Some(Tracking::Denied) => Some(false),
            _ => consent.ad_personalization,
        };
        match (consent.ad_user_data, personalized) {
            (Some(false), _) => Self::Refused,
            (_, Some(false)) => Self::NotPersonalized,
            (Some(true), Some(true)) => Self::Allowed,
            _ => Self::Unknown,
        }
    }
}

/// Returns whether an event is a payment whose amount may not be forwarded, so that the payment is
/// not forwarded either. A payment from the SDK may have no amount at all and is then forwarded
/// without one. Meta (`network_a`) requires an amount for `Purchase`.
pub fn lacks_forwardable_amount(event: &Event, network_event: &str) -> bool {
    let is_payment = event.name == PURCHASE
        || network_event == "Purchase"
        || (event.name == SUBSCRIBE && event.source == EventSource::Billing);
    let has_no_amount = event.source == EventSource::Sdk && event.revenue.is_none();
    is_payment && !has_no_amount && forwardable_usd(event).is_none()
}

/// Returns the amount in USD that may be sent to networks: not negative and within the limit.
/// Predicted prices and other non-income values are forwarded although reports do not count them.
pub fn forwardable_usd(event: &Event) -> Option<Amount> {
    let revenue = event.revenue.as_ref()?;
    let is_forwardable = matches!(
        revenue.uncounted,
        None | Some(
            UncountedReason::Zero | UncountedReason::Predicted | UncountedReason::NotIncome
        )
    );
    revenue
        .usd
        .filter(|usd| is_forwardable && (Amount::ZERO..=COUNTABLE_USD_MAX).contains(usd))
}

impl Conversion {
    /// Builds a conversion. A web event uses its own click and email hash only: its sender is
    /// responsible for consent to that data, not to the app's data about the user.
    pub fn new(
        pending: &PendingDelivery,
        event: Event,
        click: Option<Click>,
        state: DeviceState,
    ) -> Self {
        let is_web = event.source == EventSource::Web;
        let mut conversion = Self {
            delivery: pending.id,
            dedup_id: pending.dedup_id.clone(),
            network_event: pending.network_event.clone(),
            page_url: None,
            click,
            network_click_id: None,
            device: state.device.map(|device| Device {
                consent: event.effective_consent(device.consent),
                ..device
            }),
            matching: ContactHashes::default(),
            user: event.user.clone(),
            event,
        };
        if is_web {
            if let Some(website) = conversion.event.website.clone() {
                conversion.page_url = Some(website.source_url);
                conversion.matching.email = website.email_sha256;
            }
        } else {
            let decision = state.attribution.map(|attribution| attribution.decision);
            conversion.network_click_id = decision.and_then(|decision| decision.network_click_id);
            conversion.matching = state.identity.contact_hashes;
            conversion.user = conversion.user.or(state.identity.user);
        }
        conversion
    }

    /// Returns how networks may use the event. The sender of a web event is responsible for
    /// consent.
    pub fn sharing(&self) -> Sharing {
        match self.event.source {
            EventSource::Web => Sharing::Allowed,
            EventSource::Sdk | EventSource::Billing => Sharing::of(self.consent()),
        }
    }

    /// Returns the consent that holds for an app event. A device that never called `configure` was
    /// not asked.
    fn consent(&self) -> Consent {
        let device = self.device.as_ref();
        self.event
            .effective_consent(device.map_or_else(Consent::default, |device| device.consent))
    }

    /// Returns whether the user consented explicitly. An unanswered question is not consent.
    pub fn has_explicit_consent(&self) -> bool {
        self.event.source == EventSource::Web || self.consent().ad_user_data == Some(true)
    }

    /// Returns the amount in USD, if it may be forwarded.
    pub fn usd(&self) -> Option<Amount> {
        forwardable_usd(&self.event)
    }

    /// Returns the device id as sent: by the website with its event, or by the app in its first
    /// call.
    pub fn device_id(&self) -> Option<&str> {
        let key = self.event.device.as_ref()?;
        let sent = match self.event.source {
            EventSource::Web => Some(key.spelling()),
            EventSource::Sdk | EventSource::Billing => {
                let device = self.device.as_ref().filter(|device| device.key == *key);
                device.map(|device| device.key.spelling())
            }
        };
        Some(sent.unwrap_or(key.as_str()))
    }

    /// Returns the values for the networks' `external_id`: hashes of the device id and the app's
    /// user id, in this order and without repetition. Leaves out a user id that looks like an email
    /// address, because addresses are normalised and hashed separately.
    pub fn external_ids(&self) -> Vec<String> {
        // A placeholder id would merge different users.
        let is_placeholder = self
            .event
            .device
            .as_ref()
            .is_some_and(DeviceKey::is_placeholder);
        let device = self.device_id().filter(|_| !is_placeholder);
        let user = self.user.as_ref().map(UserKey::as_str);
        let user = user.filter(|id| !id.contains('@'));
        let ids = [device, user].map(|id| id.map(str::trim).filter(|id| !id.is_empty()));
        let mut hashes: Vec<String> = ids
            .into_iter()
            .flatten()
            .map(|id| hex(Digest::of(id.as_bytes()).as_bytes()))
            .collect();
        hashes.dedup();
        hashes
    }

    /// Returns the user's two-letter country code in upper case: the event's, else the click's,
    /// else for app events the device's.
    pub fn country(&self) -> Option<String> {
        let of_click = self.click.as_ref().and_then(|click| click.country.as_ref());
        let device = self.device.as_ref();
        let of_device = device
            .filter(|_| self.event.source != EventSource::Web)
            .and_then(|device| device.country.as_ref());
        let country = self.event.country.as_ref().or(of_click).or(of_device)?;
        let is_country = country.len() == 2 && country.bytes().all(|b| b.is_ascii_alphabetic());
        is_country.then(|| country.to_ascii_uppercase())
    }

    /// Returns the time of the click.
    pub fn clicked_at(&self) -> Option<Timestamp> {
        self.click.as_ref().map(|click| click.clicked_at)
    }

    /// Returns a network's click id by parameter name, from the recorded click or received without
    /// one.
    pub fn click_id(&self, name: &str) -> Option<&str> {
        let from_click = self.click.as_ref().and_then(|click| {
            let ids = &click.captured.click_ids;
            match name {
                "fbclid" => ids.fbclid.as_deref(),
                "gclid" => ids.gclid.as_deref(),
                "gbraid" => ids.gbraid.as_deref(),
                "wbraid" => ids.wbraid.as_deref(),
                "ttclid" => ids.ttclid.as_deref(),
                "oppref" => ids.oppref.as_deref(),
                _ => None,
            }
        });
        let without_click = self
            .network_click_id
            .as_ref()
            .filter(|(key, _)| key == name)
            .map(|(_, id)| id.as_str());
        from_click.or(without_click)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Platform, Traits};
    use crate::event::WebEventDetails;
    use crate::forwarding::plan::samples::event;
    use crate::forwarding::samples::pending;
    use rstest::rstest;

    #[rstest]
    #[case::not_asked(None, None, None, Sharing::Unknown)]
    #[case::partial_answer(Some(true), None, None, Sharing::Unknown)]
    #[case::both(Some(true), Some(true), None, Sharing::Allowed)]
    #[case::no_personal_ads(Some(true), Some(false), None, Sharing::NotPersonalized)]
    #[case::no_personal_ads_alone(None, Some(false), None, Sharing::NotPersonalized)]
    #[case::refused(Some(false), None, None, Sharing::Refused)]
    #[case::refused_whatever_else(
        Some(false),
        Some(true),
        Some(Tracking::Authorized),
        Sharing::Refused
    )]
    #[case::no_tracking(
        Some(true),
        Some(true),
        Some(Tracking::Denied),
        Sharing::NotPersonalized
    )]
    #[case::not_asked_by_the_platform(
        Some(true),
        Some(true),
        Some(Tracking::NotDetermined),
        Sharing::Allowed
    )]
    fn sharing_follows_consent(
        #[case] ad_user_data: Option<bool>,
        #[case] ad_personalization: Option<bool>,
        #[case] tracking: Option<Tracking>,
        #[case] expected: Sharing,
    ) {
        let consent = Consent {
            ad_user_data,
            ad_personalization,
            tracking,
        };
        assert_eq!(Sharing::of(consent), expected);
    }

    #[rstest]
    #[case::sdk(EventSource::Sdk, None, Some("app"), Some("person"))]
    #[case::billing(EventSource::Billing, None, Some("app"), Some("person"))]
    #[case::web(EventSource::Web, Some("https://shop.example/"), Some("page"), None)]
    fn a_web_event_uses_its_own_data(
        #[case] source: EventSource,
        #[case] page_url: Option<&str>,
        #[case] email: Option<&str>,
        #[case] user: Option<&str>,
    ) {
        let mut event = event("purchase");
        event.source = source;
        event.website = Some(Box::new(WebEventDetails {
            source_url: "https://shop.example/".to_owned(),
            parent: None,
            email_sha256: Some("page".to_owned()),
        }));
        let mut state = DeviceState::default();
        state.identity.user = UserKey::parse("person").ok();
        state.identity.contact_hashes.email = Some("app".to_owned());
        let conversion = Conversion::new(&pending(1), event, None, state);
        assert_eq!(conversion.page_url.as_deref(), page_url);
        assert_eq!(conversion.matching.email.as_deref(), email);
        assert_eq!(conversion.user.as_ref().map(UserKey::as_str), user);
    }

    const GRANTED: Consent = Consent {
        ad_user_data: Some(true),
        ad_personalization: Some(true),
        tracking: None,
    };
    const REFUSED: Consent = Consent {
        ad_user_data: Some(false),
        ..GRANTED
    };

    #[rstest]
    #[case::older_sdk(None, Some(GRANTED), Sharing::Allowed, true)]
    #[case::both_granted(Some(GRANTED), Some(GRANTED), Sharing::Allowed, true)]
    #[case::refused_when_tracked(Some(REFUSED), Some(GRANTED), Sharing::Refused, false)]
    #[case::withdrawn_later(Some(GRANTED), Some(REFUSED), Sharing::Refused, false)]
    #[case::not_asked_when_tracked(
        Some(Consent::default()),
        Some(GRANTED),
        Sharing::Unknown,
        false
    )]
    #[case::no_device(Some(REFUSED), None, Sharing::Refused, false)]
    #[case::granted_without_a_device(Some(GRANTED), None, Sharing::Unknown, false)]
    #[case::nothing_known(None, None, Sharing::Unknown, false)]
    fn the_stricter_consent_holds(
        #[case] when_tracked: Option<Consent>,
        #[case] of_device: Option<Consent>,
        #[case] expected: Sharing,
        #[case] is_explicit: bool,
    ) {
        let mut event = event("purchase");
        event.consent = when_tracked;
        let device = of_device.map(|consent| Device {
            consent,
            ..configured_as(LOWER)
        });
        let state = DeviceState {
            device,
            ..DeviceState::default()
        };
        let conversion = Conversion::new(&pending(1), event, None, state);
        assert_eq!(conversion.sharing(), expected);
        assert_eq!(conversion.has_explicit_consent(), is_explicit);
        // The adapters read the device's consent, too.
        if let (Some(device), Some(when_tracked)) = (conversion.device, when_tracked) {
            assert_eq!(device.consent, device.consent.stricter(when_tracked));
        }
    }

    fn conversion(source: EventSource) -> Conversion {
        let mut event = event("purchase");
        event.source = source;
        event.device = Some(DeviceKey::stored("Phone-1".to_owned()));
        event.country = None;
        Conversion {
            delivery: DeliveryId::from_bytes([1; 16]),
            dedup_id: "1".to_owned(),
            network_event: "Purchase".to_owned(),
            event,
            page_url: None,
            click: None,
            network_click_id: None,
            device: None,
            matching: ContactHashes::default(),
            user: None,
        }
    }

    #[rstest]
    #[case::device_alone(None, &["Phone-1"])]
    #[case::both(Some("User 7"), &["Phone-1", "User 7"])]
    #[case::the_same_twice(Some("Phone-1"), &["Phone-1"])]
    #[case::like_an_address(Some("joe@example.com"), &["Phone-1"])]
    fn ids_keep_their_case_and_are_hashed(#[case] user: Option<&str>, #[case] ids: &[&str]) {
        let mut conversion = conversion(EventSource::Sdk);
        conversion.user = user.map(|user| UserKey::stored(user.to_owned()));
        let hashes: Vec<String> = ids
            .iter()
            .map(|id| hex(Digest::of(id.as_bytes()).as_bytes()))
            .collect();
        assert_eq!(conversion.external_ids(), hashes);
    }

    fn configured_as(id: &str) -> Device {
        Device {
            key: DeviceKey::parse(id).unwrap(),
            traits: Traits::of(Platform::Ios),
            advertising_id: None,
            idfv: None,
            consent: Consent::default(),
            country: None,
            first_seen_at: Timestamp::from_millis(0),
            last_seen_at: Timestamp::from_millis(0),
        }
    }

    const UPPER: &str = "6F9619FF-8B86-4011-B42D-00C04FC964FF";
    const LOWER: &str = "6f9619ff-8b86-4011-b42d-00c04fc964ff";

    #[rstest]
    #[case::app(EventSource::Sdk, Some(UPPER), LOWER, UPPER)]
    #[case::app_configured_in_lower_case(EventSource::Sdk, Some(LOWER), UPPER, LOWER)]
    #[case::billing(EventSource::Billing, Some(UPPER), LOWER, UPPER)]
    #[case::device_unknown(EventSource::Billing, None, UPPER, LOWER)]
    #[case::website(EventSource::Web, None, UPPER, UPPER)]
    #[case::website_sends_its_own_spelling(EventSource::Web, Some(UPPER), LOWER, LOWER)]
    fn a_device_id_is_hashed_as_sent(
        #[case] source: EventSource,
        #[case] configured: Option<&str>,
        #[case] sent_id: &str,
        #[case] expected: &str,
    ) {
        let mut conversion = conversion(source);
        conversion.event.device = DeviceKey::parse(sent_id).ok();
        conversion.device = configured.map(configured_as);
        assert_eq!(conversion.device_id(), Some(expected));
        let hash = hex(Digest::of(expected.as_bytes()).as_bytes());
        assert_eq!(conversion.external_ids(), [hash]);
    }

    #[rstest]
    #[case::known(Some("de"), Some("DE"))]
    #[case::unknown(None, None)]
    #[case::not_a_country(Some("deu"), None)]
    fn countries(#[case] country: Option<&str>, #[case] expected: Option<&str>) {
        let mut conversion = conversion(EventSource::Sdk);
        conversion.event.country = country.map(str::to_owned);
        assert_eq!(conversion.country().as_deref(), expected);
    }
}
