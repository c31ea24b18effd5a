//! What every handler has at hand: one small struct of handles, built in one place, by tests too.

use crate::geo::{GeoLocation, GeoLookup, country_from_header};
use crate::limits::RateLimits;
use crate::link_cache::LinkCache;
use crate::probe::IntegrationProbe;
use crate::read_cache::ReadCache;
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
use tributary_domain::runtime::Runtime;
use tributary_domain::skan::postback::Keys;
use tributary_store::Store;

/// The handles. Every layer and extractor of a request takes a copy, so a copy must cost next to nothing.
#[derive(Clone)]
pub struct ApiState(Arc<ApiHandles>);

impl Deref for ApiState {
    type Target = ApiHandles;

    fn deref(&self) -> &ApiHandles {
        &self.0
    }
}

impl From<ApiHandles> for ApiState {
    fn from(handles: ApiHandles) -> Self {
        Self(Arc::new(handles))
    }
}

/// What there is.
pub struct ApiHandles {
    /// The database.
    pub store: Arc<dyn Store>,
    /// The time and randomness.
    pub runtime: Runtime,
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
    pub geo_lookup: GeoLookup,
    /// The header in which a proxy of the operator's tells the client's country.
    pub country_header: Option<HeaderName>,
    /// The links that were tapped last, for when the database is away.
    pub link_cache: Arc<LinkCache>,
    /// Who may sign postbacks.
    pub postback_keys: Arc<Keys>,
    /// Who may vouch for the App Store.
    pub app_store_roots: Arc<Roots>,
    /// Tries whether a network takes what an integration sends.
    pub probe: Arc<dyn IntegrationProbe>,
    /// The keys and apps of a moment ago.
    pub read_cache: Arc<ReadCache>,
    /// Writes and reads click ids. Made once: its key is derived from the instance's secret.
    pub click_tokens: ClickTokens,
}

impl ApiHandles {
    /// Returns where a request comes from. The country that a trusted proxy names comes before the operator's own data.
    /// Only the peer of the connection is trusted, because any client can write the header.
    pub(crate) fn geo_location(&self, address: IpAddr, parts: &Parts) -> GeoLocation {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        let told = peer.and_then(|peer| self.country_from_proxy(peer.0.ip(), &parts.headers));
        let place = (self.geo_lookup)(address);
        GeoLocation {
            country: told.or(place.country),
            ..place
        }
    }

    fn country_from_proxy(&self, peer: IpAddr, headers: &HeaderMap) -> Option<String> {
        let name = self.country_header.as_ref()?;
        (self.is_trusted_proxy)(peer.to_canonical()).then(|| country_from_header(headers, name))?
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
