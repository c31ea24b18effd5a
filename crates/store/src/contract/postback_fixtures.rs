//! Fixtures for postbacks.

use super::fixtures::{SharedStore, at, first_page, new_app, organization, origin, unique};
use crate::{
    PostbackDimensions, PostbackFilter, PostbackOutcome, PostbackReportQuery, PostbackStats,
    StoredPostback,
};
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::report::postback::ReceivedPostback;
use tributary_domain::skan::CoarseValue;
use tributary_domain::skan::postback::{
    ConversionType, Interaction, ParsedPostback, Postback, Protocol, Signature,
};
use tributary_domain::vocabulary::digest::hex;
use tributary_domain::vocabulary::id::{AppId, PostbackId};

/// An app with an App Store id.
pub struct AdvertisedApp {
    /// Caller that may change the app.
    pub writer: Authorized<AppsWrite>,
    /// App id.
    pub app: AppId,
    /// App Store id.
    pub store_id: i64,
}

impl AdvertisedApp {
    /// Returns a caller that may read apps.
    pub fn reader(&self) -> Authorized<AppsRead> {
        self.writer.read_access()
    }
}

/// Returns an unused App Store id.
pub fn unused_store_id() -> i64 {
    let bytes = unique();
    let number = bytes
        .iter()
        .fold(0_i64, |sum, byte| (sum << 7) | i64::from(byte & 127));
    1_000_000_000 + number % 1_000_000_000
}

/// Creates an app with an App Store id.
pub async fn advertised_app(store: &SharedStore) -> AdvertisedApp {
    advertised_app_with_id(store, unused_store_id()).await
}

/// Creates an app with this App Store id.
pub async fn advertised_app_with_id(store: &SharedStore, store_id: i64) -> AdvertisedApp {
    let writer = organization(store).await;
    let mut app = new_app(&writer, 1);
    app.ios.app_store_id = Some(store_id.to_string());
    let app = store
        .create_app(&writer, app, Vec::new(), origin(1))
        .await
        .expect("an app is created");
    AdvertisedApp {
        writer,
        app: app.id,
        store_id,
    }
}

/// Builds a unique, valid first postback for an install.
pub fn arrival(app_store_id: i64, seconds: i64) -> ReceivedPostback {
    let transaction_id = hex(&unique());
    let postback = Postback {
        protocol: Protocol::SkAdNetwork,
        version: Some("4.0".to_owned()),
        ad_network_id: "Example123.skadnetwork".to_owned(),
        transaction_id: transaction_id.clone(),
        app_store_id,
        source_identifier: Some("5239".to_owned()),
        campaign_id: None,
        fine_value: Some(24),
        coarse_value: None,
        sequence_index: 0,
        did_win: true,
        redownload: Some(false),
        conversion_type: ConversionType::Download,
        interaction: Some(Interaction::Click),
        source_app_id: Some(1_234_567_891),
        source_domain: None,
        country_code: None,
        marketplace_id: None,
        key_id: None,
    };
    ReceivedPostback {
        id: PostbackId::new(at(seconds), unique()),
        received_at: at(seconds),
        parsed: ParsedPostback {
            postback,
            signature: Signature::Valid,
        },
        body: format!("{{\"transaction-id\":\"{transaction_id}\"}}"),
    }
}

/// Builds an AdAttributionKit postback with every field set.
pub fn full_arrival(app_store_id: i64, seconds: i64) -> ReceivedPostback {
    let mut arrival = arrival(app_store_id, seconds);
    arrival.parsed.postback = Postback {
        protocol: Protocol::AdAttributionKit,
        version: None,
        ad_network_id: "Other.adattributionkit".to_owned(),
        transaction_id: "É \"quoted\" 🚀".to_owned(),
        source_identifier: Some("0077".to_owned()),
        campaign_id: Some(100),
        fine_value: None,
        coarse_value: Some(CoarseValue::Medium),
        redownload: Some(true),
        conversion_type: ConversionType::Redownload,
        interaction: Some(Interaction::View),
        source_app_id: Some(i64::MAX),
        source_domain: Some("news.example".to_owned()),
        country_code: Some("DE".to_owned()),
        marketplace_id: Some("com.apple.AppStore".to_owned()),
        key_id: Some("apple-cas-identifier/0".to_owned()),
        ..arrival.parsed.postback
    };
    arrival
}

/// Lists an app's postbacks.
pub async fn list(
    store: &SharedStore,
    one: &AdvertisedApp,
    filter: PostbackFilter,
) -> Vec<StoredPostback> {
    let page = store
        .postbacks(&one.reader(), one.app, filter, first_page("500"))
        .await;
    page.expect("a page").page.items
}

/// Builds a query for a period of more than a month.
pub fn query(by: PostbackDimensions) -> PostbackReportQuery {
    PostbackReportQuery {
        periods: vec![(at(-1_000), at(100_000))],
        group_by: by,
        ad_network_id: None,
        protocol: None,
        rows_max: 10_000,
    }
}

/// Returns an app's figures.
pub async fn stats(
    store: &SharedStore,
    one: &AdvertisedApp,
    by: PostbackDimensions,
) -> Vec<PostbackStats> {
    let rows = store
        .postback_stats(&one.reader().analytics_access(), one.app, query(by))
        .await;
    rows.expect("figures")
}

/// Returns the number of counted postbacks, and how many of them have no conversion value.
pub async fn total(store: &SharedStore, one: &AdvertisedApp) -> (i64, i64) {
    let rows = stats(store, one, PostbackDimensions::default()).await;
    let sum = |sum: (i64, i64), row: &PostbackStats| {
        (sum.0 + row.figures.postbacks(), sum.1 + row.withheld)
    };
    rows.iter().fold((0, 0), sum)
}

/// Accepts a postback.
pub async fn accept(store: &SharedStore, arrival: &ReceivedPostback) -> PostbackOutcome {
    let accepted = store.accept_postback(arrival.clone()).await;
    accepted.expect("the postback is accepted")
}

/// Builds the same postback again, with another id, time and body.
pub fn again(earlier: &ReceivedPostback, seconds: i64, body: &str) -> ReceivedPostback {
    ReceivedPostback {
        body: body.to_owned(),
        parsed: earlier.parsed.clone(),
        ..arrival(earlier.parsed.postback.app_store_id, seconds)
    }
}
