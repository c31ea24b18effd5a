//! A click: a tap on a tracking link, with everything it said about itself.
//!
//! What a click is worth is decided later, by `attribution`. Here its URL and headers are read once, when it
//! is recorded, so that nobody has to read them again: parameters, network, platform, whether it was a
//! person, where the person is sent.

pub mod address;
pub mod agent;
pub mod destination;
pub mod params;
pub mod token;

mod app_open;
mod bot;
pub(crate) mod encoding;
mod headers;
mod network;
mod query;

pub use app_open::app_open_click_id;
pub use bot::{BotReason, detect_bot};
pub use headers::{clean_user_agent, first_language, referer_origin};
pub use network::{NetworkSource, detect_network};
pub use query::{
    ClickParameters, ID_CHARS_MAX, NAME_CHARS_MAX, PARAMETERS_BYTES_MAX, PARAMETERS_MAX,
};

use crate::access::Environment;
use crate::device::{DeviceKey, DeviceRef, Platform, Screen};
use crate::integration::Network;
use crate::link::Campaign;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::{AppId, ClickId, LinkId};
use crate::vocabulary::time::Timestamp;
use agent::Agent;
use params::TrackingParams;
use std::net::IpAddr;

/// Characters of a user agent that are kept.
pub const USER_AGENT_CHARS_MAX: usize = 500;

/// A stored click, and the device that took it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredClick {
    /// The click.
    pub click: Click,
    /// The device whose install it belongs to.
    pub taken_by: Option<DeviceKey>,
}

impl StoredClick {
    /// Whether a device took it. Test devices take no clicks, and one may have the id of a live device.
    pub fn is_taken_by(&self, device: DeviceRef<'_>) -> bool {
        device.environment == Environment::Live && self.taken_by.as_ref() == Some(device.key)
    }
}

/// A click as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Click {
    /// Its id.
    pub id: ClickId,
    /// Of which app.
    pub app: AppId,
    /// On which link.
    pub link: LinkId,
    /// When.
    pub clicked_at: Timestamp,
    /// The network that its ad ran on, where that is known.
    pub network: Option<Network>,
    /// How that is known.
    pub network_by: Option<NetworkSource>,
    /// Why it was no person, if it was none.
    pub bot: Option<BotReason>,
    /// What the browser said it runs on.
    pub agent: Agent,
    /// The first language the browser asked for, without its region, in lower case.
    pub language: Option<String>,
    /// An IANA name; only where our own page ran.
    pub timezone: Option<String>,
    /// Only where our own page ran.
    pub screen: Option<Screen>,
    /// Where it came from. Dropped after a while.
    pub address: Option<IpAddr>,
    /// The address as matching compares it; nothing where it must not be compared.
    pub address_hash: Option<Digest>,
    /// The advertising id that the network put into the URL, as matching compares it.
    pub advertising_hash: Option<Digest>,
    /// Two letters.
    pub country: Option<String>,
    /// As sent, cut.
    pub user_agent: Option<String>,
    /// The origin of the page it was on.
    pub referer: Option<String>,
    /// The origin that a `web_funnel` link sent it to.
    pub destination_origin: Option<String>,
    /// What its URL said.
    pub captured: TrackingParams,
    /// The environment of the SDK key that reported it. A tap on a link has none.
    pub environment: Option<Environment>,
}

impl Click {
    /// Returns a click of which nothing more is known.
    #[must_use]
    pub fn new(
        id: ClickId,
        (app, link): (AppId, LinkId),
        clicked_at: Timestamp,
        platform: Platform,
    ) -> Self {
        Self {
            id,
            app,
            link,
            clicked_at,
            network: None,
            network_by: None,
            bot: None,
            agent: Agent {
                platform,
                os_version: None,
                model: None,
            },
            language: None,
            timezone: None,
            screen: None,
            address: None,
            address_hash: None,
            advertising_hash: None,
            country: None,
            user_agent: None,
            referer: None,
            destination_origin: None,
            captured: TrackingParams::default(),
            environment: None,
        }
    }

    /// The environment whose figures count it. Taps are live figures.
    pub fn report_environment(&self) -> Environment {
        self.environment.unwrap_or(Environment::Live)
    }

    /// Whether devices and events of this environment may refer to it. A tap is open to both: a test device matches it
    /// without using it up.
    pub fn is_visible_to(&self, environment: Environment) -> bool {
        self.environment.is_none_or(|own| own == environment)
    }

    /// What it ran on.
    pub const fn platform(&self) -> Platform {
        self.agent.platform
    }

    /// With what our own page learned. Only what is not known yet is added: what the click itself said was
    /// said before anybody could look at the page.
    #[must_use]
    pub fn with_hints(mut self, hints: PageHints) -> Self {
        self.timezone = self.timezone.or(hints.timezone);
        self.screen = self.screen.or(hints.screen);
        self.agent.model = self.agent.model.or(hints.model);
        self.agent.os_version = self.agent.os_version.or(hints.os_version);
        self
    }

    /// What it is credited to: what its URL said, and the link's own words where it said nothing.
    pub fn campaign(&self) -> &Campaign {
        &self.captured.campaign
    }
}

/// What our own page learned about the device, after the click was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PageHints {
    /// An IANA name.
    pub timezone: Option<String>,
    /// Of the device.
    pub screen: Option<Screen>,
    /// The true model, where the browser tells it on request.
    pub model: Option<String>,
    /// The true version, where the browser tells it on request.
    pub os_version: Option<String>,
}
