//! An attribution decision with its explanation.

use super::evidence::ReferrerTimes;
use crate::attestation::AttestationOutcome;
use crate::integration::Network;
use crate::link::Campaign;
use crate::vocabulary::id::{ClickId, LinkId};
use crate::vocabulary::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of candidates stored with a decision, including the winner.
pub const DECISION_CANDIDATES_MAX: usize = 20;

/// Attribution state of an install.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MatchState {
    /// A click or an AdServices record was accepted.
    Attributed,
    /// No evidence, or the Play Store reported an organic install.
    Organic,
    /// A third-party referrer named a network or a campaign.
    ThirdParty,
    /// The referrer could not be read, and nothing else matched.
    Unavailable,
    /// The click id is valid, but its click is not stored yet.
    PendingClick,
    /// The click id is invalid, or its click was never stored.
    BadToken,
    /// The click belongs to another app.
    ForeignClick,
    /// The timestamps contradict the click.
    Implausible,
    /// The click is older than the click window.
    OutsideWindow,
    /// The click is already credited with another install.
    DuplicateClick,
}

crate::keywords! {
    MatchState {
        Attributed => "attributed",
        Organic => "organic",
        ThirdParty => "third_party",
        Unavailable => "unavailable",
        PendingClick => "pending_click",
        BadToken => "bad_token",
        ForeignClick => "foreign_click",
        Implausible => "implausible",
        OutsideWindow => "outside_window",
        DuplicateClick => "duplicate_click",
    }
}

/// Kind of evidence that matched an install.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MatchType {
    /// Click id from the client, or advertising id.
    ClickId,
    /// Play Store referrer.
    Referrer,
    /// Apple's AdServices record.
    AdServices,
    /// Probabilistic match.
    Probabilistic,
    /// No match.
    Organic,
}

crate::keywords! {
    MatchType {
        ClickId => "click_id",
        Referrer => "referrer",
        AdServices => "adservices",
        Probabilistic => "probabilistic",
        Organic => "organic",
    }
}

/// Method that found a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MatchMethod {
    /// Click id in the Play Store referrer.
    Referrer,
    /// Click id from the client.
    ClickId,
    /// Apple's record of a tap.
    AdServicesTap,
    /// Third-party referrer.
    ForeignReferrer,
    /// Advertising id.
    AdvertisingId,
    /// Apple's record of a view.
    AdServicesView,
    /// Probabilistic match.
    Probabilistic,
}

crate::keywords! {
    MatchMethod {
        Referrer => "referrer",
        ClickId => "click_id",
        AdServicesTap => "adservices_tap",
        ForeignReferrer => "foreign_referrer",
        AdvertisingId => "advertising_id",
        AdServicesView => "adservices_view",
        Probabilistic => "probabilistic",
    }
}

/// Reason why a candidate was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rejection {
    /// Older than the window.
    OutsideWindow,
    /// Already credited with another install.
    DuplicateClick,
    /// Click by a bot.
    Bot,
    /// Click on a test link.
    TestLink,
    /// Invalid click id.
    BadToken,
    /// The click belongs to another app.
    ForeignClick,
    /// The click is not stored yet.
    PendingClick,
    /// Contradicted by timestamps.
    Implausible,
    /// Score below the minimum.
    ScoreTooLow,
    /// Another candidate scores about as high.
    Ambiguous,
    /// Too many clicks share the address.
    SharedAddress,
    /// The app disabled the method.
    MethodDisabled,
    /// A later click won.
    OlderThanWinner,
}

crate::keywords! {
    Rejection {
        OutsideWindow => "outside_window",
        DuplicateClick => "duplicate_click",
        Bot => "bot",
        TestLink => "test_link",
        BadToken => "bad_token",
        ForeignClick => "foreign_click",
        PendingClick => "pending_click",
        Implausible => "implausible",
        ScoreTooLow => "score_too_low",
        Ambiguous => "ambiguous",
        SharedAddress => "shared_address",
        MethodDisabled => "method_disabled",
        OlderThanWinner => "older_than_winner",
    }
}

/// Fraud signal for an install. A flag alone does not change the decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flag {
    /// The store reported no timestamps, so the device's were used.
    UnverifiedTime,
    /// The click-to-install time (CTIT) is impossibly short.
    ShortCtit,
    /// The timestamps contradict the click, but under the app's policy the click is only flagged.
    Implausible,
    /// The model or OS version does not exist on this platform.
    ImpossibleDevice,
    /// Many installs from one address within an hour.
    InstallBurst,
    /// The device sent a token that does not prove a genuine app.
    AttestationFailed,
    /// The device sent no token, although the app asks for one.
    AttestationMissing,
}

crate::keywords! {
    Flag {
        UnverifiedTime => "unverified_time",
        ShortCtit => "short_ctit",
        Implausible => "implausible",
        ImpossibleDevice => "impossible_device",
        InstallBurst => "install_burst",
        AttestationFailed => "attestation_failed",
        AttestationMissing => "attestation_missing",
    }
}

/// Network that an install is credited to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CreditedNetwork {
    /// An ad network that events are forwarded to.
    Ad(Network),
    /// Apple Ads. No events are forwarded to it.
    AppleAds,
    /// Any other link or referrer, such as a newsletter or a partner.
    Other,
    /// No network.
    Organic,
}

impl CreditedNetwork {
    /// All that can be paid.
    pub const PAID: [Self; 6] = [
        Self::Ad(Network::A),
        Self::Ad(Network::B),
        Self::Ad(Network::C),
        Self::Ad(Network::D),
        Self::AppleAds,
        Self::Other,
    ];

    /// Returns the name used in storage and responses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ad(network) => network.as_str(),
            Self::AppleAds => "apple_ads",
            Self::Other => "other",
            Self::Organic => "organic",
        }
    }

    /// Returns the name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ad(network) => network.name(),
            Self::AppleAds => "Apple Ads",
            Self::Other => "Other",
            Self::Organic => "Organic",
        }
    }

    /// Parses the output of [`Self::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "apple_ads" => Some(Self::AppleAds),
            "other" => Some(Self::Other),
            "organic" => Some(Self::Organic),
            _ => Network::parse(text).map(Self::Ad),
        }
    }
}

/// Points per signal. `None` means unknown; zero means known but different.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "each is the signal it is named after")]
pub struct Signals {
    pub address: Option<u8>,
    pub os_version: Option<u8>,
    pub model: Option<u8>,
    pub timezone: Option<u8>,
    pub language: Option<u8>,
    pub screen: Option<u8>,
}

/// A candidate and its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsideredCandidate {
    /// Click, if there is one.
    pub click: Option<ClickId>,
    /// Link of the click.
    pub link: Option<LinkId>,
    /// Network of the click.
    pub network: Option<CreditedNetwork>,
    /// Time of the click.
    pub clicked_at: Option<Timestamp>,
    /// Age at the install, in seconds.
    pub age_seconds: Option<i64>,
    /// Method that found the candidate.
    pub method: MatchMethod,
    /// Score of a probabilistic candidate.
    pub score: Option<u8>,
    /// Points per signal of a probabilistic candidate.
    pub signals: Option<Signals>,
    /// Reason for the rejection; `None` for the winner.
    pub rejection: Option<Rejection>,
}

/// Summary of the evidence, without personal data.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EvidenceSummary {
    /// `ours`, `organic`, `google`, `meta`, `other` or `unavailable`; `None` if no referrer was
    /// sent.
    pub referrer: Option<String>,
    /// `tap`, `view`, `not_attributed`, `pending`, `invalid` or `expired`; `None` if no token was
    /// sent.
    pub ad_services: Option<String>,
    /// `valid`, `opened_link`, `bad`, `foreign` or `not_stored`; `None` if no click id was sent.
    pub click_token: Option<String>,
    /// `relay`, `private` or `other`.
    pub address_class: Option<String>,
    /// Whether the device proved that it runs the genuine app; `None` if the app did not ask.
    pub attestation: Option<AttestationOutcome>,
}

/// App settings that the decision used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingsSummary {
    /// Click window in hours.
    pub click_window_hours: i64,
    /// Whether probabilistic matching was enabled for the platform.
    pub probabilistic: bool,
    /// Window for probabilistic matches in hours.
    pub window_hours: i64,
}

/// A decision that a better one replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SupersededDecision {
    /// Kind of evidence that matched.
    pub match_type: MatchType,
    /// Time of the decision.
    pub decided_at: Timestamp,
}

/// Attribution decision for an install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Attribution state.
    pub state: MatchState,
    /// Kind of evidence that matched.
    pub match_type: MatchType,
    /// Credited network.
    pub network: CreditedNetwork,
    /// Confidence in percent; `None` without credit.
    pub confidence: Option<u8>,
    /// Winning click, if it is one of ours.
    pub click: Option<ClickId>,
    /// Link of the winning click.
    pub link: Option<LinkId>,
    /// Credited campaign.
    pub campaign: Campaign,
    /// Search keyword.
    pub keyword: Option<String>,
    /// Network click id that came without one of our clicks, with its parameter name, such as
    /// `gclid`.
    pub network_click_id: Option<(String, String)>,
    /// Deep link for the installed app.
    pub deep_link: Option<String>,
    /// Custom data for the installed app.
    pub custom_data: BTreeMap<String, String>,
    /// Other parameters from the click's URL.
    pub query_params: BTreeMap<String, String>,
    /// Explanation in one sentence, without personal data.
    pub reason: String,
    /// Fraud flags.
    pub flags: BTreeSet<Flag>,
    /// Candidates including the winner, at most [`DECISION_CANDIDATES_MAX`].
    pub candidates: Vec<ConsideredCandidate>,
    /// Summary of the evidence.
    pub evidence: EvidenceSummary,
    /// Timestamps from the store. A device sends them only once, so they are kept in case a click
    /// is stored later and must be checked against them.
    pub times: ReferrerTimes,
    /// App settings at the time of the decision.
    pub settings: SettingsSummary,
}
