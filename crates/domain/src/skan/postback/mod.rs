//! What Apple's devices report: reading it, and checking who signed it.
//!
//! The edge reads JSON into [`PostbackFields`] and says nothing about what it found. [`skadnetwork()`]
//! and [`adattributionkit()`] put the fields to Apple's rules, check the signature, and bring both
//! protocols to one [`Postback`]. For AdAttributionKit the edge first has [`crate::vocabulary::jws`] take the
//! signed string apart, and reads the JSON inside.
//!
//! A signature never refuses a postback: what does not verify is kept for whoever debugs it, and is
//! not counted. What is refused is what no device ever sent.

mod adattributionkit;
mod fields;
mod keys;
mod message;
mod skadnetwork;
mod verify;

#[cfg(test)]
mod signing;
#[cfg(test)]
mod vectors;

use crate::skan::document::CoarseValue;

pub use adattributionkit::{JWS_FIELD, JWS_HEADER, JWS_PAYLOAD, parse_adattributionkit};
pub use fields::{PostbackFields, Scalar, TEXT_CHARS_MAX};
pub use keys::{Keys, P192Key, P256Key};
pub use message::{SEPARATOR, SkAdNetworkVersion};
pub use skadnetwork::{parse_skadnetwork, signed_message};

/// Which of Apple's two frameworks sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// `skadnetwork`: versions 1.0 to 4.0.
    SkAdNetwork,
    /// `adattributionkit`.
    AdAttributionKit,
}

crate::keywords! {
    Protocol[2] {
        SkAdNetwork => "skadnetwork",
        AdAttributionKit => "adattributionkit",
    }
}

/// What came of checking the signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Signature {
    /// `valid`: Apple signed these fields.
    Valid,
    /// `invalid`: Apple did not.
    Invalid,
    /// `development`: signed with a key that anyone with a phone in Developer Mode can use.
    Development,
    /// `unverifiable`: a version or a key that is not known here.
    Unverifiable,
}

crate::keywords! {
    Signature[4] {
        Valid => "valid",
        Invalid => "invalid",
        Development => "development",
        Unverifiable => "unverifiable",
    }
}

/// What the person did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConversionType {
    /// `download`: installed the app for the first time.
    Download,
    /// `redownload`: had it before.
    Redownload,
    /// `re-engagement`: has it, and came back through an ad. AdAttributionKit only.
    ReEngagement,
}

crate::keywords! {
    ConversionType[3] {
        Download => "download",
        Redownload => "redownload",
        ReEngagement => "re-engagement" | "reengagement",
    }
}

/// What the person did with the ad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Interaction {
    /// `click`: a tap on an ad that Apple drew, or on the web.
    Click,
    /// `view`: saw it.
    View,
}

crate::keywords! {
    Interaction[2] {
        Click => "click",
        View => "view",
    }
}

/// A postback of either protocol, as far as both say the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Postback {
    /// Who sent it.
    pub protocol: Protocol,
    /// Of SKAdNetwork: `1.0` where it says none. AdAttributionKit has no versions.
    pub version: Option<String>,
    /// The ad network, as received.
    pub ad_network_id: String,
    /// `transaction-id` or `postback-identifier`, as received.
    pub transaction_id: String,
    /// The App Store id of the advertised app; 0 for a build installed from Xcode.
    pub app_store_id: i64,
    /// 2 to 4 digits, leading zeros kept. From SKAdNetwork 4.0 on.
    pub source_identifier: Option<String>,
    /// 1–100. Before SKAdNetwork 4.0.
    pub campaign_id: Option<i64>,
    /// 0–63. Missing is withheld or never set, not zero. Not signed.
    pub fine_value: Option<u8>,
    /// Never together with the fine value. Not signed.
    pub coarse_value: Option<CoarseValue>,
    /// Which window: 0, 1 or 2. 0 where the version has none.
    pub sequence_index: u8,
    /// Whether this ad network is credited. True where the version does not say.
    pub did_win: bool,
    /// SKAdNetwork's own word for it; `None` where it says nothing.
    pub redownload: Option<bool>,
    /// What the person did.
    pub conversion_type: ConversionType,
    /// Tap or view, where it says.
    pub interaction: Option<Interaction>,
    /// The app that showed the ad; 0 marks a test.
    pub source_app_id: Option<i64>,
    /// The site that showed the ad.
    pub source_domain: Option<String>,
    /// Two capital letters. Not signed.
    pub country_code: Option<String>,
    /// The store's bundle id. AdAttributionKit only.
    pub marketplace_id: Option<String>,
    /// The name of the signing key. AdAttributionKit only.
    pub key_id: Option<String>,
}

impl Postback {
    /// Whether it says of itself that it is a test: shown by the app 0.
    pub fn is_test(&self) -> bool {
        self.source_app_id == Some(0)
    }

    /// What the same postback, sent again, has in common with this one.
    pub fn key(&self) -> PostbackKey {
        PostbackKey {
            protocol: self.protocol,
            ad_network_id: self.ad_network_id.to_lowercase(),
            transaction_id: self.transaction_id.to_lowercase(),
            sequence_index: self.sequence_index,
            did_win: self.did_win,
        }
    }
}

/// What makes two postbacks the same. The bodies may still differ: conversion values are not signed,
/// so anyone who has seen one can send it again with another value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PostbackKey {
    /// The protocol.
    pub protocol: Protocol,
    /// In lower case.
    pub ad_network_id: String,
    /// In lower case: Apple writes it in either.
    pub transaction_id: String,
    /// The three windows of one install are three postbacks.
    pub sequence_index: u8,
    /// A loss and a win are two.
    pub did_win: bool,
}

/// A postback that was read, and what its signature is worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedPostback {
    /// What it says.
    pub postback: Postback,
    /// Who says it.
    pub signature: Signature,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read_again() {
        for one in Protocol::ALL {
            assert_eq!(Protocol::parse(one.as_str()), Some(one));
        }
        for one in Signature::ALL {
            assert_eq!(Signature::parse(one.as_str()), Some(one));
        }
        for one in ConversionType::ALL {
            assert_eq!(ConversionType::parse(one.as_str()), Some(one));
        }
        for one in Interaction::ALL {
            assert_eq!(Interaction::parse(one.as_str()), Some(one));
        }
        assert_eq!(
            ConversionType::parse("reengagement"),
            Some(ConversionType::ReEngagement)
        );
        assert_eq!(ConversionType::parse("Download"), None);
    }
}
