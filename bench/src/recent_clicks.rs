//! Recent clicks with ids that follow from their numbers, so that the load generator can send them
//! without reading them from the database.

use crate::child::SECRET_KEY_BYTES;
use crate::site::BenchSite;
use crate::template::{ADDRESSES, numbered_address, scattered};
use anyhow::anyhow;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::time::Duration;
use tributary_domain::click::Click;
use tributary_domain::click::address::{AddressHasher, ComparableAddress};
use tributary_domain::click::agent::Agent;
use tributary_domain::click::token::ClickTokens;
use tributary_domain::device::Platform;
use tributary_domain::integration::Network;
use tributary_domain::keyring::Keyring;
use tributary_domain::vocabulary::id::{AppId, ClickId, LinkId};
use tributary_domain::vocabulary::time::Timestamp;

/// First number of the addresses from which the clicks come.
pub(crate) const CLICK_NETWORK: u8 = 151;
/// Period over which the clicks are spread. A probabilistic match goes back a day at most.
const SPREAD: Duration = Duration::from_hours(20);

/// Clicks on the install links of all apps in turn.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct RecentClicks {
    pub(crate) count: u64,
    /// Time of the latest click, in milliseconds.
    pub(crate) until: i64,
}

impl RecentClicks {
    fn id(&self, number: u64) -> ClickId {
        let spread = u64::try_from(SPREAD.as_millis()).unwrap_or(u64::MAX);
        let mixed = scattered(number);
        let ago = i64::try_from(mixed % spread).unwrap_or_default();
        let mut random = [0; 10];
        random[2..].copy_from_slice(&mixed.to_be_bytes());
        ClickId::new(Timestamp::from_millis(self.until - ago), random)
    }

    /// Returns the number of the address from which a click comes.
    pub(crate) fn address(number: u64) -> u64 {
        scattered(number) % ADDRESSES
    }

    /// Returns a click on the app's install link.
    pub(crate) fn click(&self, site: &BenchSite, number: u64) -> anyhow::Result<Click> {
        let id = self.id(number);
        let clicked_at = id.at();
        let address = IpAddr::V4(numbered_address(CLICK_NETWORK, Self::address(number)));
        let hasher = AddressHasher::new(&Keyring::new(SECRET_KEY_BYTES));
        let comparable = ComparableAddress::of(address, false);
        let link = LinkId::parse(&site.install_link).map_err(|_| anyhow!("invalid link id"))?;
        Ok(Click {
            network: Some(Network::C),
            address: Some(address),
            address_hash: comparable.map(|address| hasher.hash(address, clicked_at)),
            agent: Agent {
                platform: Platform::Android,
                os_version: Some("14".to_owned()),
                model: Some("Pixel 8".to_owned()),
            },
            language: Some("en".to_owned()),
            ..Click::new(id, (app_id(site)?, link), clicked_at, Platform::Android)
        })
    }

    /// Returns the signed ids of all clicks.
    pub(crate) fn tokens(&self, sites: &[BenchSite]) -> anyhow::Result<Vec<String>> {
        let tokens = ClickTokens::new(&Keyring::new(SECRET_KEY_BYTES));
        let apps = sites.iter().map(app_id).collect::<Result<Vec<_>, _>>()?;
        let numbers = (0..self.count).zip(apps.iter().cycle());
        Ok(numbers
            .map(|(number, app)| tokens.sign(*app, self.id(number)))
            .collect())
    }
}

/// Returns the app's id.
pub(crate) fn app_id(site: &BenchSite) -> anyhow::Result<AppId> {
    AppId::parse(&site.app).map_err(|_| anyhow!("invalid app id"))
}
