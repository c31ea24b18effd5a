//! Tests that apply to all four networks.

use crate::ruling::Ruling;
use crate::samples::{
    ON, account, body, integration, response, revenue, sdk_event, test_mode, text_setting,
    web_purchase, with_header,
};
use crate::{
    Account, RetryAfter, Secret, SendOutcome, check, encode, judge, network_b, test_conversion,
};
use rstest::rstest;
use tributary_domain::forwarding::Conversion;
use tributary_domain::integration::{Network, SettingValue};
use tributary_domain::ledger::UncountedReason;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;

/// Returns a purchase with the network's event name.
fn purchase(network: Network) -> Conversion {
    web_purchase(match network {
        Network::A | Network::C => "Purchase",
        Network::B => "purchase",
        Network::D => "order_created",
    })
}

fn with_actions(network: Network) -> Account {
    let actions = [("purchase".to_owned(), "1".to_owned())];
    let actions = SettingValue::Map(actions.into());
    account(network, &[("conversionActions", actions)])
}

#[rstest]
fn retries_unsent_requests_and_treats_interrupted_ones_as_unknown(
    #[values(Network::A, Network::B, Network::C, Network::D)] network: Network,
) {
    let account = account(network, &[]);
    let ruling = |outcome| judge(&account, 1, &outcome).ruling;
    assert_eq!(ruling(SendOutcome::NotSent), Ruling::retry());
    assert_eq!(ruling(SendOutcome::Interrupted), Ruling::Unknown);
}

#[rstest]
fn reads_retry_after_from_any_response(
    #[values(Network::A, Network::B, Network::C, Network::D)] network: Network,
) {
    let response = with_header(response(503, ""), "retry-after", "30");
    let judgement = judge(&account(network, &[]), 1, &SendOutcome::Response(response));
    assert_eq!(judgement.retry_after, Some(RetryAfter::Delta(30)));
    assert_eq!(judgement.status, Some(503));
}

/// `network_a` rejects a `Purchase` without a value; the others accept it.
#[test]
fn a_purchase_without_an_amount_has_a_value_if_required() {
    for network in Network::ALL {
        let mut conversion = purchase(network);
        conversion.event.revenue = None;
        let request = encode(&with_actions(network), &[conversion], Some("t"));
        let text = String::from_utf8(request.body).unwrap();
        let has_zero = text.contains(r#""value":0,"currency":"USD""#);
        assert_eq!(has_zero, network == Network::A, "{network:?}: {text}");
    }
}

/// Covers the smallest and largest forwarded amounts, and one with more than two decimals.
#[rstest]
#[case("0.01", "0.01", "1")]
#[case("2000.00", "2000", "200000")]
#[case("10.869565", "10.869565", "1087")]
fn amounts_are_exact(#[case] usd: &str, #[case] major: &str, #[case] minor: &str) {
    for network in Network::ALL {
        let mut conversion = purchase(network);
        conversion.event.revenue = Some(revenue(usd, None));
        let request = encode(&with_actions(network), &[conversion], Some("t"));
        let text = String::from_utf8(request.body).unwrap();
        let (field, amount) = match network {
            Network::A | Network::C => ("value", major),
            Network::B => ("conversionValue", major),
            Network::D => ("amount", minor),
        };
        assert!(text.contains(&format!(r#""{field}":{amount},"currency":"USD""#)));
    }
}

#[rstest]
#[case::over_the_limit("2000.01", Some(UncountedReason::OverLimit))]
#[case::less_than_nothing("-1", Some(UncountedReason::Negative))]
fn omits_amounts_that_may_not_be_forwarded(
    #[case] usd: &str,
    #[case] uncounted: Option<UncountedReason>,
) {
    for network in Network::ALL {
        let mut conversion = purchase(network);
        conversion.event.revenue = Some(revenue(usd, uncounted));
        let account = with_actions(network);
        let refused = check(&account, &conversion).unwrap_err();
        assert_eq!(refused.code, "amount_not_forwardable");
        "subscribe".clone_into(&mut conversion.event.name);
        let request = encode(&account, &[conversion], Some("t"));
        let text = String::from_utf8(request.body).unwrap();
        assert!(!text.contains("currency"), "{network:?}");
    }
}

#[rstest]
fn debug_output_has_no_secrets(
    #[values(Network::A, Network::B, Network::C, Network::D)] network: Network,
) {
    let (integration, mut secrets) = integration(network, &[]);
    secrets.insert("appSecret".to_owned(), Secret::new("hush-app"));
    let account = Account::read(&integration, &secrets).unwrap();
    let request = encode(&account, &[purchase(network)], Some("hush-access"));
    let echo = r#"{"error":{"message":"hush-token hush-key hush-client"},"code":40105,"message":"hush-token"}"#;
    let outcome = SendOutcome::Response(response(400, echo));
    let judgement = judge(&account, 1, &outcome);
    let printed = format!("{account:?} {request:?} {judgement:?} {outcome:?} {secrets:?}");
    assert!(!printed.contains("hush"), "{printed}");
    let own: Vec<String> = account.secrets().map(str::to_owned).collect();
    assert!(!own.is_empty());
    let message = judgement.message.unwrap();
    assert!(own.iter().all(|secret| !message.contains(secret.as_str())));
}

#[test]
fn debug_output_has_no_service_account_key() {
    let (integration, mut secrets) = integration(Network::B, &[]);
    let file = include_str!("network_b/test_key.json");
    secrets.insert("serviceAccountKey".to_owned(), Secret::new(file));
    let account = Account::read(&integration, &secrets).unwrap();
    let Account::B(of_b) = &account else {
        panic!("another network's account");
    };
    let request = network_b::token_request(of_b, 0);
    let printed = format!("{account:?} {request:?}");
    assert!(
        !printed.contains("PRIVATE KEY") && !printed.contains("MII"),
        "{printed}"
    );
    assert!(account.redact(file).len() < 10);
}

#[test]
fn redacts_plain_and_encoded_secrets() {
    let account = account(Network::B, &[]);
    let redacted = account.redact("a 1//hush-refresh b 1%2F%2Fhush-refresh c");
    assert_eq!(redacted, "a *** b *** c");
}

#[rstest]
#[case(Network::A, "pixelId", "accessToken")]
#[case(Network::B, "operatingAccountId", "refreshToken")]
#[case(Network::C, "pixelCode", "accessToken")]
#[case(Network::D, "pixelId", "apiKey")]
fn names_what_is_missing(
    #[case] network: Network,
    #[case] setting: &str,
    #[case] credential: &str,
) {
    let message = |without_setting: bool| {
        let (mut integration, mut secrets) = integration(network, &[]);
        if without_setting {
            integration.settings.remove(setting);
        } else {
            secrets.remove(credential);
        }
        Account::read(&integration, &secrets).err().unwrap().message
    };
    assert_eq!(message(true), format!("Missing: settings.{setting}."));
    assert_eq!(
        message(false),
        format!("Missing: credentials.{credential}.")
    );
}

#[rstest]
#[case(Network::A, true)]
#[case(Network::B, false)]
#[case(Network::C, true)]
#[case(Network::D, false)]
fn test_mode_requires_a_code_if_tests_would_count(#[case] network: Network, #[case] needed: bool) {
    let (integration, secrets) = integration(network, &[("testMode", ON)]);
    let account = Account::read(&integration, &secrets);
    assert_eq!(account.is_err(), needed);
    assert!(account.is_err() || account.unwrap().is_test_mode());
}

#[test]
fn a_code_without_test_mode_has_no_effect() {
    let code = [("testEventCode", text_setting("TEST123"))];
    for network in [Network::A, Network::C] {
        let account = account(network, &code);
        let request = encode(&account, &[sdk_event("install", "Lead")], None);
        assert!(!account.is_test_mode() && body(&request).get("test_event_code").is_none());
    }
}

#[rstest]
fn test_events_are_sendable_and_marked(
    #[values(Network::A, Network::B, Network::C, Network::D)] network: Network,
) {
    let [_, code] = test_mode();
    let actions = [("purchase".to_owned(), "1".to_owned())];
    let actions = ("conversionActions", SettingValue::Map(actions.into()));
    let (integration, secrets) = integration(network, &[code, actions]);
    let account = Account::read_for_test(&integration, &secrets).unwrap();
    assert!(account.is_test_mode());
    let now = Timestamp::from_millis(1_794_657_600_000);
    let conversion = test_conversion(&account, now, AppId::from_bytes([1; 16]));
    assert_eq!(check(&account, &conversion), Ok(()));
    let body = body(&encode(&account, &[conversion], Some("t")));
    let marked = match network {
        Network::A | Network::C => body["test_event_code"] == "TEST123",
        Network::B => body["validateOnly"] == true,
        Network::D => body["validate_only"] == true,
    };
    assert!(marked);
}
