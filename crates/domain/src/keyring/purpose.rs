//! What the keys that are derived from the secret key are for, and what a rotation does to each.

use crate::access::known_browser::KNOWN_BROWSER_LIFETIME;
use std::time::Duration;

/// Longest retention of clicks (`retention.click_days`). A click id is of no use after its click.
const CLICK_ID_LIFETIME: Duration = Duration::from_hours(400 * 24);

/// Purpose of a derived key. A purpose includes a version, so that a new layout gets a new key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// Encrypts stored secrets, cookies and continued forms.
    Seal,
    /// Detects another secret key.
    Check,
    /// Authenticates pagination cursors.
    Cursor,
    /// Authenticates the forms of signed-in users.
    FormToken,
    /// Authenticates challenges for attestation.
    AttestationChallenge,
    /// Signs cookies of browsers that a user has signed in with.
    KnownBrowser,
    /// Signs click ids.
    ClickId,
    /// Derives the ids of clicks that installed apps report.
    OpenedClick,
    /// Hashes addresses.
    Address,
    /// Hashes advertising ids.
    AdvertisingId,
    /// Derives the TXT records that verify link domains.
    DomainVerification,
}

crate::keywords! {
    Purpose {
        Seal => "credential/1",
        Check => "check/1",
        Cursor => "cursor/1",
        FormToken => "form-token/1",
        AttestationChallenge => "attestation-challenge/1",
        KnownBrowser => "known-browser/2",
        ClickId => "click-id/1",
        OpenedClick => "opened-click/2",
        Address => "address/1",
        AdvertisingId => "advertising-id/1",
        DomainVerification => "domain-verification/1",
    }
}

/// What a rotation of the secret key does to the key of a purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RotationEffect {
    /// The new secret key replaces it. What the old one made is accepted as long as nodes know the
    /// old secret key.
    Replaced,
    /// The new secret key replaces it, and what the old one made is accepted for this time.
    AcceptedFor(Duration),
    /// It stays the same, because its results are stored or published.
    Unchanged,
}

impl Purpose {
    /// Returns what a rotation does to the key.
    pub const fn rotation_effect(self) -> RotationEffect {
        match self {
            Self::Seal
            | Self::Check
            | Self::Cursor
            | Self::FormToken
            | Self::AttestationChallenge => RotationEffect::Replaced,
            Self::KnownBrowser => RotationEffect::AcceptedFor(KNOWN_BROWSER_LIFETIME),
            Self::ClickId => RotationEffect::AcceptedFor(CLICK_ID_LIFETIME),
            Self::OpenedClick | Self::Address | Self::AdvertisingId | Self::DomainVerification => {
                RotationEffect::Unchanged
            }
        }
    }
}
