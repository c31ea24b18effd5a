//! Sample event, click and integrations.

use crate::access::Environment;
use crate::attribution::{CreditedNetwork, MatchType};
use crate::click::Click;
use crate::click::params::TrackingParams;
use crate::device::{DeviceKey, Platform};
use crate::event::{Credit, Event, EventSource};
use crate::integration::{Credential, Integration, Network, SettingValue};
use crate::keyring::seal::SealedSecret;
use crate::ledger::{Revenue, UncountedReason};
use crate::link::Campaign;
use crate::vocabulary::currency::Currency;
use crate::vocabulary::day::Day;
use crate::vocabulary::id::{AppId, ClickId, EventId, LinkId};
use crate::vocabulary::money::Amount;
use crate::vocabulary::time::Timestamp;
use std::collections::BTreeMap;

pub(crate) const APP: AppId = AppId::from_bytes([1; 16]);
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// A live SDK event that happens now and is credited to `network_a` by a click.
pub(crate) fn event(name: &str) -> Event {
    Event {
        id: EventId::from_bytes([2; 16]),
        external_id: "e1".to_owned(),
        app: APP,
        environment: Environment::Live,
        source: EventSource::Sdk,
        name: name.to_owned(),
        original_name: None,
        occurred_at: NOW,
        received_at: NOW,
        device: Some(DeviceKey::stored("d".to_owned())),
        user: None,
        platform: Some(Platform::Ios),
        country: None,
        revenue: None,
        credit: Some(credit(CreditedNetwork::Ad(Network::A))),
        params: None,
        first_payment: false,
        is_service_install: name == "install",
        duplicate_of: None,
        dedup_root: None,
        consent: None,
        skipped: Vec::new(),
        website: None,
    }
}

pub(crate) fn credit(network: CreditedNetwork) -> Credit {
    Credit {
        network,
        match_type: MatchType::ClickId,
        link: Some(LinkId::from_bytes([4; 16])),
        click: Some(ClickId::from_bytes([3; 16])),
        campaign: Campaign::default(),
        hold: None,
    }
}

pub(crate) fn worth(usd: Option<&str>, uncounted: Option<UncountedReason>) -> Revenue {
    Revenue {
        amount: Amount::parse("1").unwrap(),
        currency: Some(Currency::USD),
        usd: usd.map(|text| Amount::parse(text).unwrap()),
        rate_day: Day::parse("2024-03-18").ok(),
        rate: Some("1".to_owned()),
        rate_source: Some("identity".to_owned()),
        uncounted,
    }
}

/// A click with click ids from all networks.
pub(crate) fn click() -> Click {
    let mut captured = TrackingParams::default();
    captured.click_ids.fbclid = Some("fb-1".to_owned());
    captured.click_ids.gclid = Some("g-1".to_owned());
    captured.click_ids.ttclid = Some("tt-1".to_owned());
    captured.click_ids.oppref = Some("op-1".to_owned());
    let (id, link) = (ClickId::from_bytes([3; 16]), LinkId::from_bytes([4; 16]));
    let clicked_at = Timestamp::from_millis(NOW.as_millis() - 60_000);
    Click {
        network: Some(Network::A),
        user_agent: Some("Mozilla/5.0".to_owned()),
        captured,
        ..Click::new(id, (APP, link), clicked_at, Platform::Ios)
    }
}

/// A complete integration that was enabled long ago.
pub(crate) fn active(network: Network) -> Integration {
    let (settings, credentials): (&[&str], &[&str]) = match network {
        Network::A => (&["pixelId"], &["accessToken"]),
        Network::B => (&["operatingAccountId"], &["serviceAccountKey"]),
        Network::C => (&["pixelCode"], &["accessToken"]),
        Network::D => (&["pixelId"], &["apiKey"]),
    };
    let mut integration = Integration {
        enabled: true,
        enabled_at: Some(Timestamp::from_millis(1)),
        ..Integration::new(APP, network)
    };
    for name in settings {
        let value = SettingValue::Text("1".to_owned());
        integration.settings.insert((*name).to_owned(), value);
    }
    for name in credentials {
        let credential = Credential {
            sealed: SealedSecret::from_bytes(vec![1]),
            hint: None,
        };
        integration
            .credentials
            .insert((*name).to_owned(), credential);
    }
    if network == Network::B {
        let names = integration
            .mapping()
            .into_iter()
            .map(|row| row.network_event);
        let actions: BTreeMap<String, String> = names.map(|name| (name, "7".to_owned())).collect();
        integration
            .settings
            .insert("conversionActions".to_owned(), SettingValue::Map(actions));
    }
    integration
}
