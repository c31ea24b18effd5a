//! `GET /g/{idOrSlug}` — the page of an `app_install` link: its app, and the way to both stores.
//!
//! For networks that forbid bare redirects, and for whatever has no store of its own. It works without
//! script; where script runs, it tells time zone and screen, which a redirect never learns.

use super::page::{self, Landing, StoreButton};
use super::tap::{ResolvedTap, resolve_tap};
use super::tap_request::TapRequest;
use crate::state::ApiState;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::click::destination::store_url;
use tributary_domain::device::Platform;
use tributary_domain::link::LinkKind;
use tributary_domain::link::qr::QrCode;
use tributary_domain::vocabulary::web_url::HttpsUrl;

/// Bytes of the URL that the code holds, at most. Longer ones make codes that cheap cameras cannot read.
const QR_URL_BYTES_MAX: usize = 300;

pub(super) async fn show(State(state): State<ApiState>, arrival: TapRequest) -> Response {
    match resolve_tap(&state, &arrival, LinkKind::AppInstall).await {
        Ok(arrived) => page(&state, &arrival, &arrived),
        Err(page) => page,
    }
}

/// The page of a tap.
pub(super) fn page(state: &ApiState, arrival: &TapRequest, arrived: &ResolvedTap) -> Response {
    let (link, app) = (&arrived.tracked.link, &arrived.tracked.app);
    let token = arrived.token.as_deref();
    let button = |platform: Platform, label| {
        store_url(link, app, platform, token).map(|url| StoreButton {
            url,
            label,
            // On a computer, neither is more likely than the other.
            is_first: platform == arrived.platform,
        })
    };
    let mut stores: Vec<StoreButton> = [
        button(Platform::Ios, "Get it for iPhone"),
        button(Platform::Android, "Get it for Android"),
    ]
    .into_iter()
    .flatten()
    .collect();
    stores.sort_by_key(|store| !store.is_first);
    let address = link.landing_url(&app.link_base(&state.base_url));
    page::landing(&Landing {
        app: app.name.as_str(),
        stores,
        website: link.fallback_url.as_ref().map(HttpsUrl::as_str),
        code: address.and_then(|address| qr_code(&address, arrival)),
        hints: token
            .filter(|_| arrived.is_person)
            .map(|token| (format!("/g/{token}/hints"), app.id.to_string())),
    })
}

/// A code of this page's own address, for a phone. It keeps what the ad said, where that is short enough.
fn qr_code(address: &str, arrival: &TapRequest) -> Option<QrCode> {
    let whole = match arrival.query.as_str() {
        "" => address.to_owned(),
        query => format!("{address}?{query}"),
    };
    let fits = whole.len() <= QR_URL_BYTES_MAX;
    QrCode::of(if fits { &whole } else { address })
}
