//! What every handler has at hand: one small struct of handles, built in one place, by tests too.

use crate::known::Known;
use crate::limits::RateLimits;
use crate::link_cache::LastKnownLinks;
use crate::place::{Place, PlaceOf, country_in};
use crate::probe::Probe;
use crate::readiness::Readiness;
use axum::extract::ConnectInfo;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tributary_domain::billing::certificate::Roots;
use tributary_domain::click::token::ClickTokens;
use tributary_domain::keyring::Keyring;
use tributary_domain::outside::Source;
use tributary_domain::skan::postback::Keys;
use tributary_store::Store;

/// The handles. Every layer and extractor of a request takes a copy, so a copy must cost next to nothing.
#[derive(Clone)]
pub struct ApiState(Arc<Handles>);

impl Deref for ApiState {
    type Target = Handles;

    fn deref(&self) -> &Handles {
        &self.0
    }
}

impl From<Handles> for ApiState {
    fn from(handles: Handles) -> Self {
        Self(Arc::new(handles))
    }
}

/// What there is.
pub struct Handles {
    /// The database.
    pub store: Arc<dyn Store>,
    /// The time and randomness.
    pub source: Source,
    /// Signs cursors and seals credentials.
    pub keyring: Keyring,
    /// Where the service is reached, without a slash at the end.
    pub base_url: Arc<str>,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// How often somebody may ask.
    pub limits: Arc<RateLimits>,
    /// Whether the database can commit, as of a moment ago.
    pub readiness: Arc<Readiness>,
    /// Whether an address is a proxy of the operator's, whose word on the client's address is believed.
    pub is_trusted_proxy: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>,
    /// Where an address is.
    pub place_of: PlaceOf,
    /// The header in which a proxy of the operator's tells the client's country.
    pub country_header: Option<HeaderName>,
    /// The links that were tapped last, for when the database is away.
    pub last_known_links: Arc<LastKnownLinks>,
    /// Who may sign postbacks.
    pub postback_keys: Arc<Keys>,
    /// Who may vouch for the App Store.
    pub store_roots: Arc<Roots>,
    /// Tries whether a network takes what an integration sends.
    pub probe: Arc<dyn Probe>,
    /// The keys and apps of a moment ago.
    pub known: Arc<Known>,
    /// Writes and reads click ids. Made once: its key is derived from the instance's secret.
    pub click_tokens: ClickTokens,
}

impl Handles {
    /// Returns where a request comes from. The country that a trusted proxy names comes before the operator's own data.
    /// Only the peer of the connection is trusted, because any client can write the header.
    pub(crate) fn place(&self, address: IpAddr, parts: &Parts) -> Place {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        let told = peer.and_then(|peer| self.told_country(peer.0.ip(), &parts.headers));
        let place = (self.place_of)(address);
        Place {
            country: told.or(place.country),
            ..place
        }
    }

    fn told_country(&self, peer: IpAddr, headers: &HeaderMap) -> Option<String> {
        let name = self.country_header.as_ref()?;
        (self.is_trusted_proxy)(peer.to_canonical()).then(|| country_in(headers, name))?
    }
}

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// Until a body has arrived whole; then 408.
    pub body: Duration,
    /// Until a request is answered; then 503.
    pub request: Duration,
}
