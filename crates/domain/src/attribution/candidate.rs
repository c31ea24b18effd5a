//! Candidate clicks for an install, as found in the database.

use super::evidence::ClickIdSource;
use crate::click::Click;
use crate::link::Link;
use crate::vocabulary::id::ClickId;
use std::collections::BTreeMap;

/// A click that may have led to the install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Click.
    pub click: Click,
    /// Deep link for the installed app.
    pub deep_link: Option<String>,
    /// Custom data for the installed app.
    pub custom_data: BTreeMap<String, String>,
    /// Whether another live install is already credited to this click. A click counts for one
    /// install.
    pub is_taken: bool,
}

impl Candidate {
    /// Creates a candidate from a click and its link. The link may be archived by now.
    pub fn of(click: Click, link: Link, taken: bool) -> Self {
        Self {
            click,
            deep_link: link.deep_link.map(|link| link.as_str().to_owned()),
            custom_data: link.custom_data,
            is_taken: taken,
        }
    }
}

/// Result of looking up a click id that the device delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClickLookup {
    /// The id is malformed or its signature is wrong.
    BadToken,
    /// The id is valid, but its click belongs to another app.
    Foreign(ClickId),
    /// The id is valid, but its click is not stored.
    Unknown(ClickId),
    /// The stored click.
    Found(Box<Candidate>),
}

/// A click id that the device delivered, with its lookup result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveredClick {
    /// How the id reached the device.
    pub source: ClickIdSource,
    /// Result of the lookup.
    pub lookup: ClickLookup,
}

/// Candidates found in the database. The result does not depend on the order in which clicks were
/// recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AttributionCandidates {
    /// Clicks whose ids the device delivered.
    pub delivered: Vec<DeliveredClick>,
    /// The app's clicks with the device's advertising id, newest first, at most 20.
    pub same_advertising_id: Vec<Candidate>,
    /// The app's clicks from the device's address within the longest probabilistic window, newest
    /// first, at most [`super::ADDRESS_CANDIDATES_MAX`] plus one.
    pub same_address: Vec<Candidate>,
    /// Number of the app's other installs from this address in the hour before this one, by link.
    pub installs_from_address: Vec<(crate::vocabulary::id::LinkId, u32)>,
}
