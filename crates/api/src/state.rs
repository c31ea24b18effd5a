//! State shared by all handlers.

use crate::decompressor::BodyDecompressor;
use crate::documents::Documents;
use crate::geo::{GeoLocation, GeoLookup, country_from_header};
use crate::limits::RateLimits;
use crate::link_cache::LinkCache;
use crate::notice_sender::NoticeSender;
use crate::probe::IntegrationProbe;
use crate::read_cache::ReadCache;
use crate::readiness::Readiness;
use crate::txt_lookup::TxtLookup;
use crate::unmatched::UnmatchedPages;
use crate::unverified_writes::UnverifiedWrites;
use axum::extract::ConnectInfo;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tributary_domain::billing::certificate::TrustedRoots;
use tributary_domain::click::address::AddressHasher;
use tributary_domain::click::token::ClickTokens;
use tributary_domain::keyring::Keyring;
use tributary_domain::node_role::NodeRoles;
use tributary_domain::runtime::Runtime;
use tributary_domain::skan::postback::Keys;
use tributary_store::Store;
use tributary_store::report_slots::ReportSlots;

/// Shared handles. Every layer and extractor clones them, so cloning must be cheap.
#[derive(Clone)]
pub struct ApiState(Arc<SharedState>);

struct SharedState {
    handles: ApiHandles,
    address_hasher: AddressHasher,
}

impl ApiState {
    /// Returns the hasher for addresses and advertising ids.
    pub(crate) fn address_hasher(&self) -> &AddressHasher {
        &self.0.address_hasher
    }
}

impl Deref for ApiState {
    type Target = ApiHandles;

    fn deref(&self) -> &ApiHandles {
        &self.0.handles
    }
}

impl From<ApiHandles> for ApiState {
    fn from(handles: ApiHandles) -> Self {
        Self(Arc::new(SharedState {
            address_hasher: AddressHasher::new(&handles.keyring),
            handles,
        }))
    }
}

/// Dependencies of the handlers.
pub struct ApiHandles {
    /// The database.
    pub store: Arc<dyn Store>,
    /// Clock and random number generator.
    pub runtime: Runtime,
    /// Signs cursors and encrypts credentials.
    pub keyring: Keyring,
    /// Roles of this node. It serves only the endpoints that belong to them.
    pub roles: NodeRoles,
    /// Public base URL of the service, without a trailing slash.
    pub base_url: Arc<str>,
    /// Deadlines for bodies and requests.
    pub timeouts: Timeouts,
    /// Rate limits per key and address.
    pub limits: Arc<RateLimits>,
    /// Slots for reports and exports.
    pub report_slots: ReportSlots,
    /// Cached result of the latest commit probe.
    pub readiness: Arc<Readiness>,
    /// Returns whether an address is a trusted proxy. Only a trusted proxy's forwarding headers are
    /// used.
    pub is_trusted_proxy: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>,
    /// GeoIP lookup.
    pub geo_lookup: GeoLookup,
    /// Header in which a trusted proxy sends the client's country.
    pub country_header: Option<HeaderName>,
    /// Documents that are served as Markdown.
    pub documents: Arc<Documents>,
    /// Writes and sends the messages of notices.
    pub notices: Arc<dyn NoticeSender>,
    /// Recently tapped links.
    pub link_cache: Arc<LinkCache>,
    /// Keys that may sign Apple's postbacks.
    pub postback_keys: Arc<Keys>,
    /// Root certificates for App Store notifications.
    pub app_store_roots: Arc<TrustedRoots>,
    /// Root certificates for App Attest.
    pub app_attest_roots: Arc<TrustedRoots>,
    /// Sends test events to ad networks.
    pub probe: Arc<dyn IntegrationProbe>,
    /// Looks up TXT records, which verify link domains.
    pub txt_lookup: TxtLookup,
    /// Cache of API keys and apps.
    pub read_cache: Arc<ReadCache>,
    /// Decompresses request bodies.
    pub decompressor: Arc<BodyDecompressor>,
    /// Daily quotas for writes on behalf of unverified senders.
    pub unverified_writes: Arc<UnverifiedWrites>,
    /// Pages for people who follow a wrong address. Without them, they get JSON.
    pub unmatched_pages: Option<UnmatchedPages>,
    /// Signs and verifies click ids. Built once, because its key is derived from the secret key.
    pub click_tokens: ClickTokens,
}

impl ApiHandles {
    /// Returns the client's location. A country sent by a trusted proxy takes precedence over
    /// GeoIP. The country header counts only if the connection's peer is a trusted proxy, because
    /// any client can send it.
    pub(crate) fn geo_location(&self, address: IpAddr, parts: &Parts) -> GeoLocation {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        let country = peer.and_then(|peer| self.country_from_proxy(peer.0.ip(), &parts.headers));
        let location = (self.geo_lookup)(address);
        GeoLocation {
            country: country.or(location.country),
            ..location
        }
    }

    fn country_from_proxy(&self, peer: IpAddr, headers: &HeaderMap) -> Option<String> {
        let name = self.country_header.as_ref()?;
        (self.is_trusted_proxy)(peer.to_canonical()).then(|| country_from_header(headers, name))?
    }
}

/// Deadlines for a request.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// Time for the complete body to arrive. After that, the server returns 408.
    pub body: Duration,
    /// Time for the complete request. After that, the server returns 503.
    pub request: Duration,
    /// Time for the client to take the next chunk of an export. After that, it is disconnected.
    pub export_idle: Duration,
}
