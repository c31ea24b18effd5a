//! Clicks on tracking links and the data recorded with them.
//!
//! URL and headers are parsed once, when a click is recorded: parameters, network, platform, bot
//! detection and destination. Which install a click is credited with is decided later, by
//! `attribution`.

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

pub use app_open::{APP_OPEN_INTERVAL_MILLIS, app_open_click_id};
pub use bot::{BotReason, detect_bot, uncounted_reason};
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

/// Maximum stored length of a user agent in characters.
pub const USER_AGENT_CHARS_MAX: usize = 500;

/// A stored click, and the device whose install it is credited with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredClick {
    /// Click.
    pub click: Click,
    /// Device whose install the click is credited with.
    pub taken_by: Option<DeviceKey>,
}

impl StoredClick {
    /// Returns whether this device's install is attributed to the click. Only live devices claim
    /// clicks; a test device may have the same id as a live one.
    pub fn is_taken_by(&self, device: DeviceRef<'_>) -> bool {
        device.environment == Environment::Live && self.taken_by.as_ref() == Some(device.key)
    }
}

/// A recorded click.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Click {
    /// Click id.
    pub id: ClickId,
    /// App id.
    pub app: AppId,
    /// Link id.
    pub link: LinkId,
    /// Time of the click.
    pub clicked_at: Timestamp,
    /// Ad network, if known.
    pub network: Option<Network>,
    /// How the network was detected.
    pub network_by: Option<NetworkSource>,
    /// Why the click never counts; `None` for a person's click on a link that is no test link.
    pub bot: Option<BotReason>,
    /// Platform, OS version and model that the browser reported.
    pub agent: Agent,
    /// First language in `Accept-Language`, without its region, in lower case.
    pub language: Option<String>,
    /// IANA name of the time zone, if our landing page ran.
    pub timezone: Option<String>,
    /// Screen, if our landing page ran.
    pub screen: Option<Screen>,
    /// IP address. Retention removes it after a while.
    pub address: Option<IpAddr>,
    /// Hash of the address for matching; `None` if the address must not be compared.
    pub address_hash: Option<Digest>,
    /// Hash of the advertising id in the URL, for matching.
    pub advertising_hash: Option<Digest>,
    /// Country, as two letters.
    pub country: Option<String>,
    /// User agent as sent, cut to the maximum length.
    pub user_agent: Option<String>,
    /// Origin of the referring page.
    pub referer: Option<String>,
    /// Origin of the page that a `web_funnel` link redirected to.
    pub destination_origin: Option<String>,
    /// Tracking parameters in the click's URL.
    pub captured: TrackingParams,
    /// Environment of the SDK key that reported the click; `None` for a click on a link.
    pub environment: Option<Environment>,
}

impl Click {
    /// Creates a click without further details.
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

    /// Returns the environment whose reports count the click. Clicks on links count as live.
    pub fn report_environment(&self) -> Environment {
        self.environment.unwrap_or(Environment::Live)
    }

    /// Returns whether devices and events of this environment may refer to the click. A click on a
    /// link is visible to both environments: a test device matches it without using it up.
    pub fn is_visible_to(&self, environment: Environment) -> bool {
        self.environment.is_none_or(|own| own == environment)
    }

    /// Returns whether the click is on a test link.
    pub fn is_test(&self) -> bool {
        self.bot == Some(BotReason::TestLink)
    }

    /// Returns the platform.
    pub const fn platform(&self) -> Platform {
        self.agent.platform
    }

    /// Adds the details that our landing page reported. Values that the click already has are kept,
    /// because they were reported first.
    #[must_use]
    pub fn with_hints(mut self, hints: PageHints) -> Self {
        self.timezone = self.timezone.or(hints.timezone);
        self.screen = self.screen.or(hints.screen);
        self.agent.model = self.agent.model.or(hints.model);
        self.agent.os_version = self.agent.os_version.or(hints.os_version);
        self
    }

    /// Returns the campaign from the click's URL, with gaps filled from the link.
    pub fn campaign(&self) -> &Campaign {
        &self.captured.campaign
    }
}

/// Device details that our landing page reported after the click was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PageHints {
    /// IANA name of the time zone.
    pub timezone: Option<String>,
    /// Screen of the device.
    pub screen: Option<Screen>,
    /// Exact model, if the browser reveals it on request.
    pub model: Option<String>,
    /// Exact OS version, if the browser reveals it on request.
    pub os_version: Option<String>,
}
