//! The clicks that an install may belong to, as the store found them.

use super::evidence::ClickIdSource;
use crate::click::Click;
use crate::link::Link;
use crate::vocabulary::id::ClickId;
use std::collections::BTreeMap;

/// A click that may have led to the install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The click.
    pub click: Click,
    /// Where its link sends the installed app.
    pub deep_link: Option<String>,
    /// What its link tells the installed app.
    pub custom_data: BTreeMap<String, String>,
    /// Whether another live device's install has it already. A click leads to one install.
    pub is_taken: bool,
}

impl Candidate {
    /// A click with what its link tells the installed app. The link may be archived by now.
    pub fn of(click: Click, link: Link, taken: bool) -> Self {
        Self {
            click,
            deep_link: link.deep_link.map(|link| link.as_str().to_owned()),
            custom_data: link.custom_data,
            is_taken: taken,
        }
    }
}

/// What became of the click id that the device delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClickLookup {
    /// Its tag is wrong, or it is no click id at all.
    BadToken,
    /// It is ours, but of another app.
    Foreign(ClickId),
    /// It is ours and of this app, but no such click is stored.
    Unknown(ClickId),
    /// The click.
    Found(Box<Candidate>),
}

/// A click id that the device delivered, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveredClick {
    /// How it reached the device.
    pub source: ClickIdSource,
    /// What became of it.
    pub lookup: ClickLookup,
}

/// What the store found. None of it depends on the order in which clicks arrived.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AttributionCandidates {
    /// The clicks that the device named: by the referrer, by itself, by the link that opened it.
    pub delivered: Vec<DeliveredClick>,
    /// Clicks of the app with the device's advertising id, newest first, at most 20.
    pub same_advertising_id: Vec<Candidate>,
    /// Clicks of the app from the device's address within the longest window of probabilistic matching,
    /// newest first, at most [`super::ADDRESS_CANDIDATES_MAX`] and one more.
    pub same_address: Vec<Candidate>,
    /// Other installs of the app from this address in the hour before this one, by link.
    pub installs_from_address: Vec<(crate::vocabulary::id::LinkId, u32)>,
}
