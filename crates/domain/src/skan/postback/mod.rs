//! Parses Apple's postbacks and verifies their signatures.
//!
//! The endpoint reads JSON into [`PostbackFields`] without validating it. [`parse_skadnetwork`] and
//! [`parse_adattributionkit`] apply Apple's rules, verify the signature, and convert both protocols
//! to one [`Postback`]. For AdAttributionKit the endpoint first splits the signed string with
//! [`crate::vocabulary::jws`] and reads the JSON inside.
//!
//! A postback with an invalid signature is not rejected: it is stored for debugging and not
//! counted. Only postbacks that no device sends are rejected.

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

/// Apple framework that sent a postback.
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

/// Result of the signature check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Signature {
    /// `valid`: Apple signed these fields.
    Valid,
    /// `invalid`: Apple did not sign these fields.
    Invalid,
    /// `development`: signed with a key that anyone with a phone in Developer Mode can use.
    Development,
    /// `unverifiable`: the version or key is unknown.
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

/// Type of conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConversionType {
    /// `download`: first install of the app.
    Download,
    /// `redownload`: install by a person who had the app before.
    Redownload,
    /// `re-engagement`: return to an installed app through an ad. AdAttributionKit only.
    ReEngagement,
}

crate::keywords! {
    ConversionType[3] {
        Download => "download",
        Redownload => "redownload",
        ReEngagement => "re-engagement" | "reengagement",
    }
}

/// Interaction with the ad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Interaction {
    /// `click`: tap on an ad that Apple rendered, or on a web ad.
    Click,
    /// `view`: the ad was only shown.
    View,
}

crate::keywords! {
    Interaction[2] {
        Click => "click",
        View => "view",
    }
}

/// A postback of either protocol, with the fields they have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Postback {
    /// Protocol.
    pub protocol: Protocol,
    /// SKAdNetwork version, `1.0` if absent. AdAttributionKit has no versions.
    pub version: Option<String>,
    /// Ad network id as received.
    pub ad_network_id: String,
    /// `transaction-id` or `postback-identifier`, as received.
    pub transaction_id: String,
    /// App Store id of the advertised app; 0 for a build installed from Xcode.
    pub app_store_id: i64,
    /// Source identifier of 2 to 4 digits with leading zeros. AdAttributionKit, and SKAdNetwork
    /// from 4.0 on.
    pub source_identifier: Option<String>,
    /// Campaign id, 1–100. SKAdNetwork before 4.0.
    pub campaign_id: Option<i64>,
    /// Fine value, 0–63. `None` means withheld or never set, not zero. Not signed.
    pub fine_value: Option<u8>,
    /// Coarse value; never together with the fine value. Not signed.
    pub coarse_value: Option<CoarseValue>,
    /// Window index: 0, 1 or 2. 0 if the version has none.
    pub sequence_index: u8,
    /// Whether this ad network is credited. True if the version does not say.
    pub did_win: bool,
    /// The `redownload` field of SKAdNetwork, if present.
    pub redownload: Option<bool>,
    /// Type of conversion.
    pub conversion_type: ConversionType,
    /// Tap or view, if known.
    pub interaction: Option<Interaction>,
    /// App that showed the ad; 0 marks a test.
    pub source_app_id: Option<i64>,
    /// Website that showed the ad.
    pub source_domain: Option<String>,
    /// Country code, two capital letters. Not signed.
    pub country_code: Option<String>,
    /// Bundle id of the app store. AdAttributionKit only.
    pub marketplace_id: Option<String>,
    /// Id of the signing key. AdAttributionKit only.
    pub key_id: Option<String>,
}

impl Postback {
    /// Returns whether the postback is marked as a test: its source app is 0.
    pub fn is_test(&self) -> bool {
        self.source_app_id == Some(0)
    }

    /// Returns the deduplication key, which is equal for copies of the same postback.
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

/// Deduplication key of a postback. Bodies with equal keys may differ: conversion values are not
/// signed, so anyone who has seen a postback can send it with another value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PostbackKey {
    /// The protocol.
    pub protocol: Protocol,
    /// Ad network id in lower case.
    pub ad_network_id: String,
    /// Transaction id in lower case; Apple writes it in either case.
    pub transaction_id: String,
    /// Window index: the windows of one install are separate postbacks.
    pub sequence_index: u8,
    /// Whether the network won: a win and a loss are separate postbacks.
    pub did_win: bool,
}

/// A parsed postback with the result of its signature check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedPostback {
    /// The postback.
    pub postback: Postback,
    /// Result of the signature check.
    pub signature: Signature,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_keyword_round_trips() {
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
