//! Web events: attribution credit, and the effect on revenue and reports.

use crate::website::{START, Website, micros, with};
use reqwest::Method;
use serde_json::{Value, json};
use tributary_domain::exchange::{Rate, RateBase, RateValue};
use tributary_domain::report::Figures;
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_testkit::{TestServer, on_both_engines};

/// Sums the counted revenue of the log, in millionths of a dollar.
fn net(log: &[Value]) -> i64 {
    let counted = log
        .iter()
        .filter(|event| event["revenue"]["counted"] == true);
    counted.map(|event| micros(&event["revenue"]["usd"])).sum()
}

on_both_engines! {
    // A source with the dollar as its base has no dollar rate, so the euro's date is shown.
    async fn readiness_shows_the_date_of_the_rate_between_dollar_and_euro(engine: Engine) {
        let server = TestServer::start(engine).await;
        let rate = |currency: &str, base, day: &str| Rate {
            currency: Currency::from_stored(currency).unwrap(),
            day: Day::parse(day).unwrap(),
            base,
            units: RateValue::ONE,
            source: "file".to_owned(),
        };
        let rates = vec![rate("EUR", RateBase::Usd, "2031-01-02"), rate("UAH", RateBase::Usd, "2031-01-03")];
        server.store.import_rates(rates, Timestamp::from_millis(START)).await.unwrap();
        let ready = server.send(server.request(Method::GET, "/readyz")).await.expect(200).data();
        assert_eq!(ready["rates"]["day"], "2031-01-02");
    }

    async fn renewals_and_refunds_are_credited_to_the_click_of_their_payment(engine: Engine) {
        let server = TestServer::start(engine).await;
        let (site, reader) = Website::open_with_reader(&server).await;
        let later = site.tap(&site.link, "gclid=x&campaign_id=9").await;
        site.send_accepted(&site.purchase("order", "10")).await;
        // Meanwhile the customer came back through another network's ad.
        let again = |event: &Value| with(event, "arClickId", later.as_str());
        site.send_accepted(&again(&site.child("renewal", "renewal", "10", "order"))).await;
        site.send_accepted(&again(&site.refund("refund-1", "-4", "order"))).await;
        site.send_accepted(&again(&site.refund("refund-2", "-3", "renewal"))).await;
        let credit = site.logged_event("order").await["attribution"].clone();
        assert_eq!((&credit["clickId"], &credit["campaign"]["id"]), (&json!(site.click), &json!("238")));
        for id in ["renewal", "refund-1", "refund-2"] {
            assert_eq!(site.logged_event(id).await["attribution"], credit, "{id}");
        }
        site.send_accepted(&again(&site.purchase("another", "5"))).await;
        assert_eq!(site.logged_event("another").await["attribution"]["network"], "network_b");
        let figures = site.figures(&server, &reader).await;
        let money = |network: &str| (figures[network].revenue_micros, figures[network].refunded_micros);
        assert_eq!(money("network_a"), (20_000_000, 7_000_000));
        assert_eq!(money("network_b"), (5_000_000, 0));
    }

    // A refund counts exactly if its payment does, at the payment's exchange rate, so that a full
    // refund nets to zero.
    async fn a_full_refund_nets_to_zero_at_the_rate_of_its_payment(engine: Engine) {
        let server = TestServer::start(engine).await;
        let (site, reader) = Website::open_with_reader(&server).await;
        // The rate of 2025-12-31 applies to payments and refunds, although it changes later. The
        // yen refunds need rounding.
        let in_currency = |event: &Value, currency: &str| with(event, "currency", currency);
        site.send_accepted(&in_currency(&site.purchase("euros", "9.99"), "EUR")).await;
        site.send_accepted(&in_currency(&site.purchase("yen", "1000"), "JPY")).await;
        let paid = site.logged_event("euros").await["revenue"].clone();
        assert_eq!((&paid["usd"], &paid["rateDate"]), (&json!(11.73825), &json!("2025-12-31")));
        server.clock.advance(std::time::Duration::from_hours(24 * 150));
        let late = |event: &Value| with(event, "timestampMs", START + 140 * 86_400_000);
        for (number, part) in ["-3.33", "-3.33", "-3.329999", "-0.000001"].into_iter().enumerate() {
            let refund = site.refund(&format!("e{number}"), part, "euros");
            site.send_accepted(&late(&in_currency(&refund, "EUR"))).await;
        }
        for (number, part) in ["-333", "-333", "-334"].into_iter().enumerate() {
            let refund = site.refund(&format!("y{number}"), part, "yen");
            site.send_accepted(&late(&in_currency(&refund, "JPY"))).await;
        }
        let refund = site.logged_event("e0").await["revenue"].clone();
        assert_eq!(refund, json!({
            "amount": -3.33, "currency": "EUR", "usd": -3.91275, "rateDate": "2025-12-31", "counted": true,
            "reason": null,
        }));
        assert_eq!(net(&site.log().await), 0);
        let figures = site.figures(&server, &reader).await["network_a"];
        assert!(figures.revenue_micros > 0);
        assert_eq!(figures.revenue_micros, figures.refunded_micros);
        assert_eq!((figures.purchases, figures.refunds), (2, 7));
    }

    // The European Central Bank publishes no rates for these currencies. They still count, without
    // any setting.
    async fn every_currency_of_the_app_stores_counts(engine: Engine) {
        let server = TestServer::start(engine).await;
        let (site, reader) = Website::open_with_reader(&server).await;
        let codes = "AED SAR TWD VND CLP COP PEN EGP NGN KZT PKR QAR KWD UAH";
        let mut total = 0;
        for currency in codes.split(' ') {
            site.send_accepted(&with(&site.purchase(currency, "100"), "currency", currency)).await;
            let event = site.logged_event(currency).await;
            assert_eq!(event["revenue"]["counted"], true, "{event}");
            total += micros(&event["revenue"]["usd"]);
        }
        assert!(total > 0);
        assert_eq!(site.figures(&server, &reader).await["network_a"].revenue_micros, total);
    }

    async fn a_refund_of_an_uncounted_payment_does_not_count(engine: Engine) {
        let server = TestServer::start(engine).await;
        let (site, reader) = Website::open_with_reader(&server).await;
        let units = with(&site.purchase("units", "10"), "currency", "CLF");
        for (payment, reason) in [(site.purchase("much", "2000.01"), "over_limit"), (units, "unconvertible")] {
            site.send_accepted(&payment).await;
            let id = payment["eventId"].as_str().unwrap();
            let revenue = site.logged_event(id).await["revenue"].clone();
            assert_eq!((&revenue["counted"], &revenue["reason"]), (&json!(false), &json!(reason)));
            let refund = site.refund(&format!("{id}-back"), "-5", id);
            site.send_accepted(&with(&refund, "currency", payment["currency"].clone())).await;
            let revenue = site.logged_event(&format!("{id}-back")).await["revenue"].clone();
            assert_eq!((&revenue["counted"], &revenue["reason"]), (&json!(false), &json!("payment_not_counted")));
        }
        // A renewal counts by its own amount.
        site.send_accepted(&site.child("renewal", "renewal", "5", "much")).await;
        site.send_accepted(&site.purchase("most", "2000")).await;
        site.send_accepted(&site.refund("most-back", "-1999.99", "most")).await;
        let figures = site.figures(&server, &reader).await["network_a"];
        assert_eq!((figures.revenue_micros, figures.refunded_micros), (2_005_000_000, 1_999_990_000));
        assert_eq!((figures.purchases, figures.renewals, figures.refunds), (3, 1, 3));
    }

    // sign_up, checkout_started, start_trial: contributes zero reporting revenue.
    async fn sign_up_checkout_and_trial_contribute_zero_revenue(engine: Engine) {
        let server = TestServer::start(engine).await;
        let (site, reader) = Website::open_with_reader(&server).await;
        site.send_accepted(&site.event("signed-up", "sign_up")).await;
        site.send_accepted(&site.priced("checkout", "checkout_started", "49.99")).await;
        site.send_accepted(&site.priced("trial", "start_trial", "9.99")).await;
        for (id, price) in [("checkout", 49.99), ("trial", 9.99)] {
            let revenue = site.logged_event(id).await["revenue"].clone();
            assert_eq!((&revenue["amount"], &revenue["usd"]), (&json!(price), &json!(price)), "the amount is stored");
            assert_eq!((&revenue["counted"], &revenue["reason"]), (&json!(false), &json!("predicted")));
        }
        assert_eq!(site.logged_event("signed-up").await["revenue"], Value::Null);
        let figures = site.figures(&server, &reader).await;
        let expected = Figures { clicks: 1, sign_ups: 1, trials: 1, events: 3, ..Figures::default() };
        assert_eq!(figures["network_a"], expected);
        // A later funded conversion requires a separate purchase receipt.
        site.send_accepted(&site.purchase("funded", "9.99")).await;
        let figures = site.figures(&server, &reader).await["network_a"];
        assert_eq!((figures.revenue_micros, figures.purchases, figures.paying_devices), (9_990_000, 1, 1));
    }

    async fn no_website_event_creates_an_install(engine: Engine) {
        let server = TestServer::start(engine).await;
        let (site, reader) = Website::open_with_reader(&server).await;
        for event in [
            site.event("s", "sign_up"), site.priced("c", "checkout_started", "10"),
            site.priced("t", "start_trial", "10"), site.purchase("p", "10"),
            site.child("n", "renewal", "10", "p"), site.refund("r", "-10", "n"),
        ] {
            site.send_accepted(&event).await;
        }
        let log = site.log().await;
        assert!(log.len() == 6 && log.iter().all(|event| event["name"] != "install" && event["source"] == "web"));
        let figures = site.figures(&server, &reader).await;
        assert!(figures.values().all(|one| one.installs == 0 && one.organic_installs == 0), "{figures:?}");
        let figures = figures["network_a"];
        assert_eq!((figures.events, figures.paying_devices), (6, 1), "the device counts as paying once");
        assert_eq!((figures.revenue_micros, figures.refunded_micros), (20_000_000, 10_000_000));
    }

    async fn rejected_and_repeated_events_change_no_figure(engine: Engine) {
        let server = TestServer::start(engine).await;
        let (site, reader) = Website::open_with_reader(&server).await;
        site.send_accepted(&site.purchase("p", "10")).await;
        site.send_accepted(&site.refund("r", "-3", "p")).await;
        let before = site.figures(&server, &reader).await;
        for event in [
            site.purchase("p", "10"), site.refund("r", "-3", "p"), site.purchase("p", "11"),
            site.refund("r2", "-8", "p"), site.refund("r3", "-1", "nothing"), site.child("n", "renewal", "5", "r"),
            with(&site.purchase("p2", "10"), "sourceUrl", "https://evil.test/"),
            with(&site.purchase("p2", "10"), "arClickId", "clk_forged"),
        ] {
            site.send(&event).await;
        }
        assert_eq!(site.figures(&server, &reader).await, before);
        assert_eq!(site.log().await.len(), 2);
    }
}
