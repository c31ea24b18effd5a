//! Which events are forwarded to which network, and the reasons for skips.

use super::samples::{NOW, active, click, credit, event, worth};
use super::*;
use crate::device::DeviceKey;
use crate::erasure::pseudonym;
use crate::forwarding::conversion::{PURCHASE, forwardable_usd};
use crate::forwarding::limits::{AGE_MARGIN, AGE_MAX};
use crate::vocabulary::money::Amount;
use rstest::rstest;
use std::time::Duration;

/// A forwardable event with its context. Each test case changes one thing.
struct Scene {
    event: Event,
    click: Option<Click>,
    matching: ContactHashes,
    consent: Consent,
    described: bool,
    unproven: bool,
    policy: MoneyPolicy,
    integration: Integration,
}

/// An event that is credited and forwarded to the network.
fn scene(network: Network, name: &str) -> Scene {
    let mut event = event(name);
    event.credit = Some(credit(CreditedNetwork::Ad(network)));
    if name == PURCHASE {
        event.revenue = Some(worth(Some("9.99"), None));
    }
    Scene {
        event,
        click: Some(click()),
        matching: ContactHashes::default(),
        consent: Consent::default(),
        described: true,
        unproven: false,
        policy: MoneyPolicy::Count,
        integration: active(network),
    }
}

impl Scene {
    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn under(self, hold: HoldState) -> Self {
        self.with(|s| s.event.credit.as_mut().unwrap().hold = Some(hold))
    }

    fn facts(&self) -> PlanFacts<'_> {
        PlanFacts {
            event: &self.event,
            click: self.click.as_ref(),
            network_click_id: None,
            consent: self.consent,
            matching: &self.matching,
            has_os_version: self.described,
            policy: self.policy,
            now: NOW,
            lacks_attestation: self.unproven,
        }
    }

    /// Returns the event name at the network, or why it is skipped.
    fn outcome(&self) -> Result<String, SkipReason> {
        let network = self.integration.network;
        let plan = plan(&self.facts(), std::slice::from_ref(&self.integration));
        let planned = plan.planned.iter().find(|one| one.network == network);
        let skipped = plan.skipped.iter().find(|(one, _)| *one == network);
        match (planned, skipped) {
            (Some(planned), None) => Ok(planned.network_event.clone()),
            (None, Some((_, skip))) => Err(*skip),
            _ => panic!("expected one delivery or one reason, got {plan:?}"),
        }
    }
}

fn before(duration: Duration) -> Timestamp {
    Timestamp::from_millis(NOW.as_millis() - i64::try_from(duration.as_millis()).unwrap())
}

#[rstest]
#[case("install", "Lead", "install", "Lead", None)]
#[case("purchase", "Purchase", "purchase", "Purchase", Some("order_created"))]
#[case(
    "sign_up",
    "CompleteRegistration",
    "sign_up",
    "CompleteRegistration",
    Some("registration_completed")
)]
#[case("start_trial", "StartTrial", "start_trial", "StartTrial", None)]
#[case("qualified_trial", "StartTrial", "qualified_trial", "StartTrial", None)]
#[case("subscribe", "Subscribe", "subscribe", "Subscribe", None)]
#[case("add_to_cart", "AddToCart", "add_to_cart", "AddToCart", None)]
#[case("view_content", "ViewContent", "view_content", "ViewContent", None)]
fn the_default_mapping_for_the_sdk(
    #[case] name: &str,
    #[case] a: &str,
    #[case] b: &str,
    #[case] c: &str,
    #[case] d: Option<&str>,
) {
    let networks = [
        (Network::A, Some(a)),
        (Network::B, Some(b)),
        (Network::C, Some(c)),
        (Network::D, d),
    ];
    for (network, expected) in networks {
        let outcome = scene(network, name).outcome();
        assert_eq!(
            outcome,
            expected.map(str::to_owned).ok_or(SkipReason::NotMapped)
        );
    }
}

#[test]
fn a_web_trial_is_forwarded_to_network_d() {
    let web = scene(Network::D, "start_trial").with(|scene| scene.event.source = EventSource::Web);
    assert_eq!(web.outcome().as_deref(), Ok("trial_started"));
    let mapped = scene(Network::D, "start_trial").with(|scene| {
        scene.integration.event_mapping = Some(scene.integration.mapping());
    });
    assert_eq!(
        mapped.outcome().as_deref(),
        Ok("trial_started"),
        "an operator's own mapping"
    );
}

fn custom(scene: &mut Scene, enabled: bool) {
    scene.integration.event_mapping = Some(vec![MappingRow {
        event: "boss_defeated".to_owned(),
        network_event: "Boss".to_owned(),
        enabled,
    }]);
}

#[rstest]
#[case::not_mapped(scene(Network::A, "boss_defeated"), Err(SkipReason::NotMapped))]
#[case::mapped(scene(Network::A, "boss_defeated").with(|s| custom(s, true)), Ok("Boss"))]
#[case::mapped_and_off(scene(Network::A, "boss_defeated").with(|s| custom(s, false)), Err(SkipReason::NotMapped))]
#[case::mapping_is_replaced_as_a_whole(scene(Network::A, "purchase").with(|s| custom(s, true)), Err(SkipReason::NotMapped))]
#[case::checkout_is_off(scene(Network::A, "initiate_checkout"), Err(SkipReason::NotMapped))]
#[case::renewal(scene(Network::A, "renewal"), Err(SkipReason::ReportingOnly))]
#[case::refund(scene(Network::B, "refund"), Err(SkipReason::ReportingOnly))]
#[case::sandbox(scene(Network::A, "install").with(|s| s.event.environment = Environment::Test), Err(SkipReason::Sandbox))]
#[case::disabled(scene(Network::A, "install").with(|s| s.integration.enabled = false), Err(SkipReason::IntegrationDisabled))]
#[case::not_complete(scene(Network::A, "install").with(|s| s.integration.settings.clear()), Err(SkipReason::IntegrationDisabled))]
#[case::disabled_and_sandbox(scene(Network::A, "install").with(|s| { s.integration.enabled = false; s.event.environment = Environment::Test; }), Err(SkipReason::Sandbox))]
#[case::credited_to_another_network(scene(Network::A, "install").with(|s| s.event.credit = Some(credit(CreditedNetwork::Ad(Network::C)))), Err(SkipReason::NotAttributed))]
#[case::uncredited(scene(Network::A, "install").with(|s| s.event.credit = None), Err(SkipReason::NotAttributed))]
#[case::organic(scene(Network::A, "install").with(|s| s.event.credit = Some(credit(CreditedNetwork::Organic))), Err(SkipReason::NotAttributed))]
#[case::all_events_of_the_app(scene(Network::A, "install").with(|s| { s.event.credit = Some(credit(CreditedNetwork::Ad(Network::C))); s.integration.scope = EventScope::All; }), Ok("Lead"))]
#[case::enabled_later(scene(Network::A, "install").with(|s| s.integration.enabled_at = Some(NOW.plus(Duration::from_millis(1)))), Err(SkipReason::EnabledLater))]
#[case::enabled_in_time(scene(Network::A, "install").with(|s| s.integration.enabled_at = Some(NOW)), Ok("Lead"))]
#[case::mapped_later(scene(Network::A, "install").with(|s| s.integration.mapped_at = Some(NOW.plus(Duration::from_millis(1)))), Err(SkipReason::EnabledLater))]
#[case::held(scene(Network::A, "install").under(HoldState::Held), Err(SkipReason::Fraud))]
#[case::rejected(scene(Network::A, "install").under(HoldState::Rejected), Err(SkipReason::Fraud))]
#[case::released(scene(Network::A, "install").under(HoldState::Released), Ok("Lead"))]
#[case::unproven(scene(Network::A, "install").with(|s| s.unproven = true), Err(SkipReason::Attestation))]
#[case::unproven_and_held(scene(Network::A, "install").under(HoldState::Held).with(|s| s.unproven = true), Err(SkipReason::Attestation))]
#[case::unproven_and_released(scene(Network::A, "install").under(HoldState::Released).with(|s| s.unproven = true), Err(SkipReason::Attestation))]
#[case::an_install_sent_by_the_app(scene(Network::A, "install").with(|s| s.event.is_service_install = false), Err(SkipReason::ReportingOnly))]
#[case::mapped_to_purchase_without_amount(scene(Network::A, "boss_defeated").with(|s| s.integration.event_mapping = Some(vec![MappingRow { event: "boss_defeated".to_owned(), network_event: "Purchase".to_owned(), enabled: true }])), Ok("Purchase"))]
#[case::erased(scene(Network::A, "install").with(|s| s.event.device = Some(pseudonym([1; 16]))), Err(SkipReason::Erased))]
fn which_events_are_forwarded(#[case] scene: Scene, #[case] expected: Result<&str, SkipReason>) {
    assert_eq!(scene.outcome(), expected.map(str::to_owned));
}

fn placeholder(scene: &mut Scene) {
    scene.event.device = DeviceKey::parse_any("00000000-0000-0000-0000-000000000000").ok();
}

fn probabilistic(scene: &mut Scene) {
    if let Some(credit) = &mut scene.event.credit {
        credit.match_type = MatchType::Probabilistic;
    }
}

fn set(scene: &mut Scene, name: &str) {
    let settings = &mut scene.integration.settings;
    settings.insert(name.to_owned(), SettingValue::Flag(true));
}

#[rstest]
#[case::probabilistic(scene(Network::A, "install").with(probabilistic), Err(SkipReason::Probabilistic))]
#[case::probabilistic_and_allowed(scene(Network::A, "install").with(|s| { probabilistic(s); set(s, "forwardProbabilistic"); }), Ok(()))]
#[case::probabilistic_of_another_network(scene(Network::A, "install").with(|s| { s.event.credit = Some(credit(CreditedNetwork::Ad(Network::C))); probabilistic(s); s.integration.scope = EventScope::All; }), Err(SkipReason::Probabilistic))]
#[case::consent_refused(scene(Network::A, "install").with(|s| s.consent.ad_user_data = Some(false)), Err(SkipReason::Consent))]
#[case::web_sender_is_responsible(scene(Network::A, "sign_up").with(|s| { s.consent.ad_user_data = Some(false); s.event.source = EventSource::Web; }), Ok(()))]
#[case::personal_ads_refused(scene(Network::A, "install").with(|s| s.consent.ad_personalization = Some(false)), Ok(()))]
#[case::billing_reports_it(scene(Network::A, "subscribe").with(|s| s.policy = MoneyPolicy::Ignore(UncountedReason::BillingSource)), Err(SkipReason::BillingSource))]
#[case::billing_reports_trials(scene(Network::A, "start_trial").with(|s| s.policy = MoneyPolicy::Ignore(UncountedReason::BillingSource)), Err(SkipReason::BillingSource))]
#[case::billing_reports_no_sign_ups(scene(Network::A, "sign_up").with(|s| s.policy = MoneyPolicy::Ignore(UncountedReason::BillingSource)), Ok(()))]
#[case::from_billing(scene(Network::A, "subscribe").with(|s| { s.policy = MoneyPolicy::Ignore(UncountedReason::BillingSource); s.event.source = EventSource::Billing; s.event.revenue = Some(worth(Some("9.99"), None)); }), Ok(()))]
#[case::from_billing_without_amount(scene(Network::A, "subscribe").with(|s| s.event.source = EventSource::Billing), Err(SkipReason::AmountNotForwardable))]
#[case::just_young_enough(scene(Network::A, "install").with(|s| s.event.occurred_at = before(AGE_MAX.checked_sub(AGE_MARGIN).unwrap().checked_sub(Duration::from_millis(1)).unwrap())), Ok(()))]
#[case::too_old(scene(Network::A, "install").with(|s| s.event.occurred_at = before(AGE_MAX.checked_sub(AGE_MARGIN).unwrap())), Err(SkipReason::TooOld))]
fn what_may_be_forwarded(#[case] scene: Scene, #[case] expected: Result<(), SkipReason>) {
    assert_eq!(scene.outcome().map(|_| ()), expected);
}

#[rstest]
#[case::a_cent(Some(worth(Some("0.01"), None)), Ok("0.01"))]
#[case::the_limit(Some(worth(Some("2000"), None)), Ok("2000"))]
#[case::over_the_limit(
    Some(worth(Some("2000.01"), Some(UncountedReason::OverLimit))),
    Err(SkipReason::AmountNotForwardable)
)]
#[case::no_rate(
    Some(worth(None, Some(UncountedReason::Unconvertible))),
    Err(SkipReason::AmountNotForwardable)
)]
#[case::negative(
    Some(worth(Some("-1"), Some(UncountedReason::Negative))),
    Err(SkipReason::AmountNotForwardable)
)]
#[case::revenue_the_app_ignores(
    Some(worth(Some("5"), Some(UncountedReason::SdkIgnored))),
    Err(SkipReason::AmountNotForwardable)
)]
#[case::zero(Some(worth(Some("0"), Some(UncountedReason::Zero))), Ok("0"))]
fn a_purchase_needs_a_forwardable_amount(
    #[case] revenue: Option<crate::ledger::Revenue>,
    #[case] expected: Result<&str, SkipReason>,
) {
    for network in Network::ALL {
        let scene = scene(network, PURCHASE).with(|scene| scene.event.revenue = revenue.clone());
        assert_eq!(scene.outcome().map(|_| ()), expected.map(|_| ()));
        let forwarded = forwardable_usd(&scene.event);
        assert_eq!(
            forwarded,
            expected.ok().map(|text| Amount::parse(text).unwrap())
        );
    }
}

#[rstest]
#[case::sdk(EventSource::Sdk, Ok(()))]
#[case::website(EventSource::Web, Err(SkipReason::AmountNotForwardable))]
#[case::billing(EventSource::Billing, Err(SkipReason::AmountNotForwardable))]
fn an_sdk_purchase_needs_no_amount(
    #[case] source: EventSource,
    #[case] expected: Result<(), SkipReason>,
) {
    for network in Network::ALL {
        let scene = scene(network, PURCHASE).with(|scene| {
            scene.event.source = source;
            scene.event.revenue = None;
        });
        assert_eq!(scene.outcome().map(|_| ()), expected, "{network:?}");
        assert_eq!(forwardable_usd(&scene.event), None);
    }
}

#[rstest]
#[case::predicted(UncountedReason::Predicted)]
#[case::not_income(UncountedReason::NotIncome)]
fn a_value_that_is_not_income_is_forwarded(#[case] reason: UncountedReason) {
    let scene = scene(Network::A, "add_to_cart")
        .with(|scene| scene.event.revenue = Some(worth(Some("500"), Some(reason))));
    assert!(scene.outcome().is_ok());
    assert_eq!(forwardable_usd(&scene.event), Amount::parse("500").ok());
    let large =
        scene.with(|scene| scene.event.revenue = Some(worth(Some("2000.01"), Some(reason))));
    assert_eq!(forwardable_usd(&large.event), None);
}

#[rstest]
#[case::predicted(Some("9.99"), Some("9.99"))]
#[case::predicted_over_the_limit(Some("2000.01"), None)]
fn a_trial_is_forwarded_with_or_without_its_price(
    #[case] usd: Option<&str>,
    #[case] forwarded: Option<&str>,
) {
    let scene = scene(Network::A, "start_trial")
        .with(|scene| scene.event.revenue = Some(worth(usd, Some(UncountedReason::Zero))));
    assert!(scene.outcome().is_ok());
    let forwarded = forwarded.map(|text| Amount::parse(text).unwrap());
    assert_eq!(forwardable_usd(&scene.event), forwarded);
}

fn without_ids(scene: &mut Scene) {
    if let Some(click) = &mut scene.click {
        click.captured.click_ids = crate::click::params::NetworkClickIds::default();
    }
}

fn clicked_after(scene: &mut Scene, after: Duration) {
    if let Some(click) = &mut scene.click {
        click.clicked_at = scene.event.occurred_at.plus(after);
    }
}

fn hashed(scene: &mut Scene) {
    scene.matching.email = Some("0".repeat(64));
}

#[rstest]
#[case::a_needs_an_agent(scene(Network::A, "sign_up").with(|s| s.click = None), Err(SkipReason::InsufficientIdentity))]
#[case::a_without_click_id(scene(Network::A, "sign_up").with(without_ids), Ok(()))]
#[case::a_app_mode_needs_none(scene(Network::A, "sign_up").with(|s| { s.click = None; s.integration.settings.insert("sdkEventMode".to_owned(), SettingValue::Text("app".to_owned())); }), Ok(()))]
#[case::a_app_mode_needs_an_os_version(scene(Network::A, "sign_up").with(|s| { s.described = false; s.integration.settings.insert("sdkEventMode".to_owned(), SettingValue::Text("app".to_owned())); }), Err(SkipReason::InsufficientIdentity))]
#[case::c_needs_a_page(scene(Network::C, "sign_up").with(|s| { s.event.credit = None; s.integration.scope = EventScope::All; }), Err(SkipReason::InsufficientIdentity))]
#[case::d_needs_no_page(scene(Network::D, "sign_up").with(|s| { s.event.credit = None; s.integration.scope = EventScope::All; }), Ok(()))]
#[case::b_without_click_id(scene(Network::B, "sign_up").with(without_ids), Err(SkipReason::NoClickId))]
#[case::b_by_hash(scene(Network::B, "sign_up").with(|s| { without_ids(s); hashed(s); set(s, "userDataEnabled"); }), Ok(()))]
#[case::b_by_hash_not_enabled(scene(Network::B, "sign_up").with(|s| { without_ids(s); hashed(s); }), Err(SkipReason::NoClickId))]
#[case::b_by_phone_digits_alone(scene(Network::B, "sign_up").with(|s| { without_ids(s); hashed(s); s.matching = ContactHashes { phone: Some("h".to_owned()), ..ContactHashes::default() }; set(s, "userDataEnabled"); }), Err(SkipReason::NoClickId))]
#[case::b_install_never_by_hash(scene(Network::B, "install").with(|s| { without_ids(s); hashed(s); set(s, "userDataEnabled"); }), Err(SkipReason::NoClickId))]
#[case::b_by_a_click_a_moment_later(scene(Network::B, "sign_up").with(|s| clicked_after(s, Duration::from_mins(10))), Ok(()))]
#[case::b_by_a_click_long_after(scene(Network::B, "sign_up").with(|s| clicked_after(s, Duration::from_mins(11))), Err(SkipReason::NoClickId))]
#[case::b_without_action(scene(Network::B, "sign_up").with(|s| { s.integration.settings.remove("conversionActions"); }), Err(SkipReason::NoConversionAction))]
#[case::c_by_device(scene(Network::C, "sign_up").with(|s| s.click = None), Ok(()))]
#[case::d_by_device(scene(Network::D, "sign_up").with(|s| s.click = None), Ok(()))]
#[case::c_by_click_with_a_placeholder_device(scene(Network::C, "sign_up").with(placeholder), Ok(()))]
#[case::d_by_click_with_a_placeholder_device(scene(Network::D, "sign_up").with(placeholder), Ok(()))]
#[case::c_with_a_placeholder_device_alone(scene(Network::C, "sign_up").with(|s| { placeholder(s); s.click = None; }), Err(SkipReason::InsufficientIdentity))]
#[case::d_with_a_placeholder_device_alone(scene(Network::D, "sign_up").with(|s| { placeholder(s); s.click = None; }), Err(SkipReason::InsufficientIdentity))]
#[case::d_without_device(scene(Network::D, "sign_up").with(|s| s.event.device = None), Err(SkipReason::InsufficientIdentity))]
fn identifiers_that_a_network_needs(
    #[case] scene: Scene,
    #[case] expected: Result<(), SkipReason>,
) {
    assert_eq!(scene.outcome().map(|_| ()), expected);
}

#[test]
fn unconcerned_networks_are_not_listed() {
    let scene = scene(Network::A, "install");
    let all: Vec<Integration> = [Network::A, Network::C].map(active).to_vec();
    let plan = plan(&scene.facts(), &all);
    let networks: Vec<Network> = plan.planned.iter().map(|one| one.network).collect();
    assert_eq!(networks, [Network::A]);
    assert_eq!(plan.skipped, [(Network::C, SkipReason::NotAttributed)]);
}

#[test]
fn early_events_are_due_when_the_network_accepts_them() {
    let scene = scene(Network::A, "install")
        .with(|scene| scene.event.occurred_at = NOW.plus(Duration::from_mins(5)));
    let plan = plan(&scene.facts(), std::slice::from_ref(&scene.integration));
    assert_eq!(plan.planned[0].due_at, NOW.plus(Duration::from_mins(4)));
}

#[test]
fn reasons_round_trip() {
    for skip in SkipReason::ALL {
        assert_eq!(SkipReason::parse(skip.as_str()), Some(*skip));
    }
}
