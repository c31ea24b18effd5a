//! A decision, with everything it looked at.

use super::evidence::ReferrerTimes;
use crate::integration::Network;
use crate::link::Campaign;
use crate::vocabulary::id::{ClickId, LinkId};
use crate::vocabulary::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// Candidates that are kept with a decision, the winner among them.
pub const DECISION_CANDIDATES_MAX: usize = 20;

/// What became of an install.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MatchState {
    /// A click or an `AdServices` record was accepted.
    Attributed,
    /// No evidence, or Play's own word that there is none.
    Organic,
    /// A third-party referrer named a network or a campaign.
    ThirdParty,
    /// The referrer could not be read, and nothing else matched.
    Unavailable,
    /// The click id is right, the click is not stored yet.
    PendingClick,
    /// The click id is wrong, or its click was never stored.
    BadToken,
    /// The click is another app's.
    ForeignClick,
    /// The times contradict the click.
    Implausible,
    /// The right click, too old.
    OutsideWindow,
    /// The click has its install already.
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

/// By what an install was matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MatchType {
    /// By a click id that the client delivered, or an advertising id.
    ClickId,
    /// By the Play Store's referrer.
    Referrer,
    /// By Apple's word.
    AdServices,
    /// By likeness.
    Probabilistic,
    /// By nothing.
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

/// By what a candidate was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MatchMethod {
    /// By the click id in the Play Store's referrer.
    Referrer,
    /// By the click id that the client delivered.
    ClickId,
    /// By Apple's record of a tap.
    AdServicesTap,
    /// By a third-party referrer.
    ForeignReferrer,
    /// By the advertising id.
    AdvertisingId,
    /// By Apple's record of a view.
    AdServicesView,
    /// By likeness.
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

/// Why a candidate was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rejection {
    /// Too old.
    OutsideWindow,
    /// It has its install already.
    DuplicateClick,
    /// No person's click.
    Bot,
    /// The click id is wrong.
    BadToken,
    /// Another app's.
    ForeignClick,
    /// The click is not stored yet.
    PendingClick,
    /// The times contradict it.
    Implausible,
    /// Not like enough.
    ScoreTooLow,
    /// Another one is as like.
    Ambiguous,
    /// Too many clicks from this address.
    SharedAddress,
    /// The app does not match like this.
    MethodDisabled,
    /// A later touch won.
    OlderThanWinner,
}

crate::keywords! {
    Rejection {
        OutsideWindow => "outside_window",
        DuplicateClick => "duplicate_click",
        Bot => "bot",
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

/// What is odd about an install. A flag alone changes no decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flag {
    /// The store reported no timestamps; these are the device's.
    UnverifiedTime,
    /// The first open came impossibly soon after the click.
    ShortCtit,
    /// The times contradict the click; the app only flags that.
    Implausible,
    /// The model or the version is not one of this platform's.
    ImpossibleDevice,
    /// Many installs from one address within an hour.
    InstallBurst,
}

crate::keywords! {
    Flag {
        UnverifiedTime => "unverified_time",
        ShortCtit => "short_ctit",
        Implausible => "implausible",
        ImpossibleDevice => "impossible_device",
        InstallBurst => "install_burst",
    }
}

/// Who an install is credited to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CreditedNetwork {
    /// One of the four that events are forwarded to.
    Ad(Network),
    /// Apple Ads, which nothing is forwarded to.
    AppleAds,
    /// A link or a referrer of none of them: a newsletter, a partner.
    Other,
    /// Nobody.
    Organic,
}

impl CreditedNetwork {
    /// As stored and answered.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ad(network) => network.as_str(),
            Self::AppleAds => "apple_ads",
            Self::Other => "other",
            Self::Organic => "organic",
        }
    }

    /// Reads what [`Self::as_str`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "apple_ads" => Some(Self::AppleAds),
            "other" => Some(Self::Other),
            "organic" => Some(Self::Organic),
            _ => Network::parse(text).map(Self::Ad),
        }
    }
}

/// The points of each signal. Nothing: unknown. Zero: known and different, but that excludes nothing.
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

/// One candidate, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsideredCandidate {
    /// The click, where there is one.
    pub click: Option<ClickId>,
    /// Its link.
    pub link: Option<LinkId>,
    /// Its network.
    pub network: Option<CreditedNetwork>,
    /// When it was made.
    pub clicked_at: Option<Timestamp>,
    /// How old it was at the install, in seconds.
    pub age_seconds: Option<i64>,
    /// How it was found.
    pub method: MatchMethod,
    /// How like it was, by likeness only.
    pub score: Option<u8>,
    /// Of what the score is made, by likeness only.
    pub signals: Option<Signals>,
    /// Why it was not taken; nothing for the winner.
    pub rejection: Option<Rejection>,
}

/// What evidence there was, in words that name no person.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EvidenceSummary {
    /// `ours`, `organic`, `google`, `meta`, `other`, `unavailable`, or nothing when none was sent.
    pub referrer: Option<String>,
    /// `tap`, `view`, `not_attributed`, `pending`, `invalid`, `expired`, or nothing when no token was sent.
    pub ad_services: Option<String>,
    /// `valid`, `opened_link`, `bad`, `foreign`, `not_stored`, or nothing when no click id was sent.
    pub click_token: Option<String>,
    /// `relay`, `private`, `other`.
    pub address_class: Option<String>,
}

/// The app's settings that the decision was made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingsSummary {
    /// How long a click may claim an install.
    pub click_window_hours: i64,
    /// Whether this platform was matched by likeness.
    pub probabilistic: bool,
    /// How long a click may claim an install by likeness.
    pub window_hours: i64,
}

/// The decision that a better one replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SupersededDecision {
    /// By what it was matched.
    pub match_type: MatchType,
    /// When it was made.
    pub decided_at: Timestamp,
}

/// Which click an install belongs to, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What became of the install.
    pub state: MatchState,
    /// By what it was matched.
    pub match_type: MatchType,
    /// Who it is credited to.
    pub network: CreditedNetwork,
    /// In hundredths; nothing for organic.
    pub confidence: Option<u8>,
    /// The winning click, where it was one of ours.
    pub click: Option<ClickId>,
    /// Its link.
    pub link: Option<LinkId>,
    /// What it is credited to.
    pub campaign: Campaign,
    /// What was searched for.
    pub keyword: Option<String>,
    /// A network's click id that came without a click of ours, by its parameter's name (`gclid`).
    pub network_click_id: Option<(String, String)>,
    /// Where the link sends the installed app.
    pub deep_link: Option<String>,
    /// What the link tells the installed app.
    pub custom_data: BTreeMap<String, String>,
    /// What else stood in the click's URL.
    pub query_params: BTreeMap<String, String>,
    /// Why, in one sentence that names no person.
    pub reason: String,
    /// What is odd about it.
    pub flags: BTreeSet<Flag>,
    /// Every candidate, at most [`CANDIDATES_KEPT_MAX`], the winner among them.
    pub candidates: Vec<ConsideredCandidate>,
    /// What evidence there was.
    pub evidence: EvidenceSummary,
    /// The store's account of the time, which a device shows once. A click that appears later is judged by it.
    pub times: ReferrerTimes,
    /// The app's settings at the time.
    pub settings: SettingsSummary,
}
