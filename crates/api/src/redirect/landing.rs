//! `GET /g/{idOrSlug}` — landing page of an `app_install` link, with buttons for both stores.
//!
//! Used for networks that forbid bare redirects, and for devices without an app store. The page
//! works without JavaScript. With JavaScript, it reports the time zone and the screen, which a
//! redirect cannot collect.

use super::click_request::ClickRequest;
use super::page::{self, Landing, StoreButton};
use super::tap::{ResolvedClick, resolve_tap};
use crate::state::ApiState;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::click::destination::store_url;
use tributary_domain::device::Platform;
use tributary_domain::link::LinkKind;
use tributary_domain::link::qr::QrCode;
use tributary_domain::vocabulary::web_url::HttpsUrl;

/// Longest URL in the QR code, in bytes. Cheap cameras cannot read larger codes.
const QR_URL_BYTES_MAX: usize = 300;

pub(super) async fn show(State(state): State<ApiState>, request: ClickRequest) -> Response {
    match resolve_tap(&state, &request, LinkKind::AppInstall).await {
        Ok(tap) => page(&state, &request, &tap),
        Err(page) => page,
    }
}

/// Renders the landing page.
pub(super) fn page(state: &ApiState, request: &ClickRequest, tap: &ResolvedClick) -> Response {
    let (link, app) = (&tap.tracked.link, &tap.tracked.app);
    let token = tap.token.as_deref();
    let button = |platform: Platform, label| {
        store_url(link, app, platform, token).map(|url| StoreButton {
            url,
            label,
            // On a computer, neither store comes first.
            is_first: platform == tap.platform,
        })
    };
    let mut stores: Vec<StoreButton> = [
        button(Platform::Ios, "Download for iPhone"),
        button(Platform::Android, "Download for Android"),
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
        code: address.and_then(|address| qr_code(&address, request)),
        hints: token
            .filter(|_| tap.is_person)
            .map(|token| (format!("/g/{token}/hints"), app.id.to_string())),
    })
}

/// Returns a QR code for this page's URL. Keeps the ad's query parameters if they fit.
fn qr_code(address: &str, request: &ClickRequest) -> Option<QrCode> {
    let whole = match request.query() {
        "" => address.to_owned(),
        query => format!("{address}?{query}"),
    };
    let fits = whole.len() <= QR_URL_BYTES_MAX;
    QrCode::of(if fits { &whole } else { address })
}
