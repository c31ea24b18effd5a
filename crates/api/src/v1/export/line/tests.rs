use super::super::records::ExportRecords;
use super::super::stream::ExportFormat;
use super::*;
use rstest::rstest;
use tributary_domain::integration::Network;
use tributary_domain::keyring::Keyring;

const APP: AppId = AppId::from_bytes([2; 16]);
const AT: Timestamp = Timestamp::from_millis(1_767_225_600_000);

fn event(source: EventSource) -> Event {
    let website = WebEventDetails {
        source_url: "https://shop.example/thanks".to_owned(),
        parent: Some("order-1".to_owned()),
        email_sha256: None,
    };
    Event {
        id: EventId::new(AT, [7; 10]),
        external_id: "order-2".to_owned(),
        app: APP,
        environment: Environment::Live,
        source,
        name: "purchase".to_owned(),
        original_name: None,
        occurred_at: AT,
        received_at: Timestamp::from_millis(1_767_225_600_123),
        device: Some(DeviceKey::stored("device-1".to_owned())),
        user: Some(UserKey::stored("user-1".to_owned())),
        platform: Some(Platform::Web),
        country: Some("DE".to_owned()),
        revenue: Some(Revenue {
            amount: Amount::from_micros(9_990_000),
            currency: Currency::from_stored("EUR"),
            usd: Some(Amount::from_micros(11_738_250)),
            rate_day: Day::parse("2025-12-31").ok(),
            rate: None,
            rate_source: None,
            uncounted: None,
        }),
        credit: Some(Credit {
            network: CreditedNetwork::Ad(Network::A),
            match_type: MatchType::ClickId,
            link: Some(LinkId::from_bytes([3; 16])),
            click: Some(ClickId::from_bytes([4; 16])),
            campaign: Campaign {
                id: Some("238".to_owned()),
                ad_name: Some("Spring \"26\"".to_owned()),
                ..Campaign::default()
            },
            hold: None,
        }),
        params: Some("{ \"sku\": \"coins\", \"n\": 1.50 }".to_owned()),
        first_payment: false,
        is_service_install: false,
        duplicate_of: None,
        dedup_root: None,
        consent: (source == EventSource::Sdk).then_some(Consent {
            ad_user_data: Some(true),
            ad_personalization: None,
            tracking: Some(Tracking::NotDetermined),
        }),
        skipped: Vec::new(),
        website: (source == EventSource::Web).then(|| Box::new(website)),
    }
}

fn exported(event: Event) -> String {
    let tokens = ClickTokens::new(&Keyring::new([7; 32]));
    let lines = ExportRecords::Events(vec![event]).lines(ExportFormat::Ndjson, &tokens);
    String::from_utf8(lines).unwrap()
}

#[rstest]
#[case::sdk(EventSource::Sdk)]
#[case::web(EventSource::Web)]
#[case::billing(EventSource::Billing)]
fn an_exported_event_is_read_back(#[case] source: EventSource) {
    let event = event(source);
    let read = read_exported_event(APP, &exported(event.clone())).unwrap();
    assert_eq!(read.event, event);
    assert_eq!(read.fingerprint.is_some(), source == EventSource::Web);
}

#[test]
fn an_install_is_told_from_an_event_with_its_name() {
    for is_service_install in [false, true] {
        let install = Event {
            name: "install".to_owned(),
            revenue: None,
            is_service_install,
            ..event(EventSource::Sdk)
        };
        let read = read_exported_event(APP, &exported(install.clone())).unwrap();
        assert_eq!(read.event, install);
    }
}

#[test]
fn a_billing_event_has_its_store_transaction() {
    let mut billed = event(EventSource::Billing);
    billed.params = Some(r#"{"provider":"appstore","transactionId":"t-1"}"#.to_owned());
    let read = read_exported_event(APP, &exported(billed)).unwrap();
    assert_eq!(read.transaction.as_deref(), Some("t-1"));
    assert_eq!(read.provider, Some(BillingProvider::Appstore));
}

#[rstest]
#[case::not_json("{", "line")]
#[case::two_values("{} {}", "line")]
#[case::another_object("{\"id\": \"x\"}", "line")]
fn lines_of_another_form_are_rejected(#[case] line: &str, #[case] field: &str) {
    let faults = read_exported_event(APP, line).unwrap_err();
    let fields: Vec<&str> = faults.iter().map(|fault| fault.field.as_str()).collect();
    assert_eq!(fields, [field], "{faults:?}");
}

/// Each case replaces a part of a valid line.
#[rstest]
#[case::id("evt_", "evx_", &["id"])]
#[case::another_time("\"timestampMs\":17672256", "\"timestampMs\":17672257", &["id"])]
#[case::source("\"sdk\"", "\"app\"", &["source"])]
#[case::environment("\"live\"", "\"Live\"", &["environment"])]
#[case::amount("9.99,", "9.9999999,", &["revenue.amount"])]
#[case::amount_as_text("9.99,", "\"9.99\",", &["revenue.amount"])]
#[case::counted("\"counted\":true", "\"counted\":false", &["revenue.counted"])]
#[case::a_flag_as_text("\"counted\":true", "\"counted\":\"true\"", &["revenue.counted"])]
#[case::without_dollars("11.73825", "null", &["revenue.usd"])]
#[case::network("network_a", "network_x", &["attribution.network"])]
#[case::click("clk_", "clk-", &["attribution.clickId"])]
#[case::several("DE\",\"firstPayment", "de\\u0000\",\"firstPayment", &["country"])]
#[case::params("{ \"sku\": \"coins\", \"n\": 1.50 }", "[]", &["params"])]
#[case::two_faults("EUR\",\"usd\":11.73825,\"rateDate\":\"2025", "euro\",\"usd\":11.73825,\"rateDate\":\"25", &["revenue.currency", "revenue.rateDate"])]
fn faults_name_their_fields(#[case] from: &str, #[case] to: &str, #[case] fields: &[&str]) {
    let line = exported(event(EventSource::Sdk));
    assert!(line.contains(from), "{line}");
    let faults = read_exported_event(APP, &line.replacen(from, to, 1)).unwrap_err();
    let found: Vec<&str> = faults.iter().map(|fault| fault.field.as_str()).collect();
    assert_eq!(found, fields, "{faults:?}");
    assert!(
        faults
            .iter()
            .all(|fault| !fault.message.contains("11.73825"))
    );
}
