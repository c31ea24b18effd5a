//! An event that nobody did, to try an integration with.

use crate::account::Account;
use tributary_domain::access::Environment;
use tributary_domain::click::Click;
use tributary_domain::click::params::TrackingParams;
use tributary_domain::device::{ContactHashes, DeviceKey, Platform};
use tributary_domain::event::{Event, EventSource};
use tributary_domain::forwarding::Conversion;
use tributary_domain::vocabulary::id::{AppId, ClickId, DeliveryId, EventId, LinkId};
use tributary_domain::vocabulary::time::Timestamp;

/// A name that no campaign is optimised for: on `network_a`, test events count like any other.
const NAME: &str = "tributary_test";
/// Of nobody.
const USER_AGENT: &str = "Mozilla/5.0 (compatible; tributary)";
/// A page that is there for examples.
const PAGE: &str = "https://example.com/";
/// Looks like a click id and is nobody's.
const CLICK_ID: &str = "tributary_test";

/// A harmless event. It is to be sent with an account from [`Account::testing`], alone; [`crate::check()`] says whether
/// the account can send it at all (on `network_b`, it needs a conversion action).
pub fn test_conversion(account: &Account, now: Timestamp, app: AppId) -> Conversion {
    let network_event = match account {
        Account::B(account) => account.any_event_key().unwrap_or(NAME),
        Account::A(_) | Account::C(_) | Account::D(_) => NAME,
    };
    let id = format!("{NAME}_{}", now.as_millis());
    Conversion {
        delivery: DeliveryId::first_at(now),
        dedup_id: id.clone(),
        network_event: network_event.to_owned(),
        event: event(&id, now, app),
        page_url: Some(PAGE.to_owned()),
        click: Some(click(account, now, app)),
        network_click_id: None,
        device: None,
        matching: ContactHashes::default(),
        user: None,
    }
}

/// As a website would post it: that is what every network takes from every account.
fn event(id: &str, now: Timestamp, app: AppId) -> Event {
    Event {
        id: EventId::first_at(now),
        external_id: id.to_owned(),
        app,
        environment: Environment::Test,
        source: EventSource::Web,
        name: NAME.to_owned(),
        original_name: None,
        occurred_at: now,
        received_at: now,
        device: Some(DeviceKey::stored(NAME.to_owned())),
        user: None,
        platform: None,
        country: None,
        revenue: None,
        credit: None,
        params: None,
        first_payment: false,
        is_service_install: false,
        duplicate_of: None,
        dedup_root: None,
        skipped: Vec::new(),
        website: None,
    }
}

fn click(account: &Account, now: Timestamp, app: AppId) -> Click {
    let mut captured = TrackingParams::default();
    if matches!(account, Account::B(_)) {
        captured.click_ids.gclid = Some(CLICK_ID.to_owned());
    }
    let of = (app, LinkId::first_at(now));
    Click {
        network: Some(account.network()),
        user_agent: Some(USER_AGENT.to_owned()),
        captured,
        ..Click::new(ClickId::first_at(now), of, now, Platform::Web)
    }
}
