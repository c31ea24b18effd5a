//! The devices of a user.

use crate::device::{DeviceKey, UserKey};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::time::Timestamp;
use std::collections::BTreeSet;

/// A stored link between a user and a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserLink {
    /// User id.
    pub user: UserKey,
    /// Device.
    pub device: DeviceKey,
    /// Time of the first claim.
    pub first_linked_at: Timestamp,
    /// Time of the latest claim.
    pub linked_at: Timestamp,
    /// Whether billing uses the link.
    pub is_used: bool,
    /// Whether the app's backend signed the claim.
    pub is_signed: bool,
    /// Keyed hash of the IP address of the first claim, while it is kept.
    pub address_hash: Option<Digest>,
}

/// Why a device that claimed a user is left out of the user's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftOutReason {
    /// The user has several devices, and the app's backend did not sign this device's claim.
    Unsigned,
    /// The claim is not used, because the device claimed too many users or lacks a signature that the
    /// app requires.
    NotUsed,
}

crate::keywords! {
    LeftOutReason {
        Unsigned => "unsigned",
        NotUsed => "not_used",
    }
}

/// A device that is left out of a user's data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOutDevice {
    /// Device.
    pub device: DeviceKey,
    /// Why it is left out.
    pub reason: LeftOutReason,
}

/// The devices of a user.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkedDevices {
    /// Devices whose data is the user's.
    pub own: BTreeSet<DeviceKey>,
    /// Devices that claimed the user without proof.
    pub left_out: Vec<LeftOutDevice>,
}

impl LinkedDevices {
    /// Decides which devices are the user's. Anyone can claim a user id, so only claims that are used
    /// count, as for an erasure. If several devices have the user, only signed claims prove that a
    /// device is the user's and not a stranger's.
    pub fn of(links: Vec<UserLink>) -> Self {
        let used = links.iter().filter(|link| link.is_used).count();
        let mut found = Self::default();
        for link in links {
            let reason = match (link.is_used, link.is_signed) {
                (false, _) => Some(LeftOutReason::NotUsed),
                (true, false) if used > 1 => Some(LeftOutReason::Unsigned),
                (true, _) => None,
            };
            let device = link.device;
            match reason {
                Some(reason) => found.left_out.push(LeftOutDevice { device, reason }),
                None => {
                    found.own.insert(device);
                }
            }
        }
        found
    }
}
