//! A web event and its click.

use super::*;
use crate::click::params::TrackingParams;
use crate::forwarding::plan::samples::click;
use crate::integration::Network;

pub(in crate::event) const APP: AppId = AppId::from_bytes([1; 16]);
pub(in crate::event) const OTHER_APP: AppId = AppId::from_bytes([9; 16]);
pub(in crate::event) const CLICK: ClickId = ClickId::from_bytes([3; 16]);

pub(in crate::event) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + seconds * 1_000)
}

pub(in crate::event) fn origin(text: &str) -> WebOrigin {
    WebOrigin::from_stored(text).unwrap()
}

pub(in crate::event) fn web_event(kind: WebEventKind, amount: Option<&str>) -> WebEvent {
    WebEvent {
        app: APP,
        id: EventId::from_bytes([2; 16]),
        external_id: "order-1".to_owned(),
        click_text: "clk_text".to_owned(),
        click: Some(CLICK),
        device: DeviceKey::stored("visitor".to_owned()),
        occurred_at: at(0),
        kind,
        amount: amount.map(|text| Amount::parse(text).unwrap()),
        currency: amount.and(Currency::from_stored("USD")),
        source_url: "https://shop.example.com/paid".to_owned(),
        origin: origin("https://shop.example.com"),
        parent: kind.has_parent().then(|| "order-0".to_owned()),
        email_sha256: None,
        received_at: at(1),
    }
}

pub(in crate::event) fn web_click() -> WebClick {
    WebClick {
        click: Click {
            network: Some(Network::D),
            country: Some("DE".to_owned()),
            user_agent: None,
            destination_origin: Some("https://shop.example.com".to_owned()),
            captured: TrackingParams::default(),
            ..click()
        },
        is_web_funnel: true,
        link_origin: Some(origin("https://shop.example.com")),
    }
}
