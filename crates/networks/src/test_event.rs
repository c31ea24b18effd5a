//! A synthetic event for testing an integration.

use crate::account::Account;
use tributary_domain::access::Environment;
use tributary_domain::click::Click;
use tributary_domain::click::params::TrackingParams;
use tributary_domain::device::{ContactHashes, DeviceKey, Platform};
use tributary_domain::event::{Event, EventSource};
use tributary_domain::forwarding::Conversion;
use tributary_domain::vocabulary::id::{AppId, ClickId, DeliveryId, EventId, LinkId};
use tributary_domain::vocabulary::time::Timestamp;

/// A name that no campaign optimises for, because `network_a` counts test events.
const NAME: &str = "tributary_test";
/// A synthetic user agent.
const USER_AGENT: &str = "Mozilla/5.0 (compatible; tributary)";
/// A reserved example page.
const PAGE: &str = "https://example.com/";
/// A synthetic click id.
const CLICK_ID: &str = "tributary_test";

/// Returns a test event. Send it alone, with an account from [`Account::read_for_test`].
/// [`crate::check()`] returns whether the account can send it (`network_b` needs a conversion
/// action).
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

/// Creates a website event, which every network accepts from every account.
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
        consent: None,
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
