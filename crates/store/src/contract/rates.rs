//! Exchange rates.

use super::fixtures::{SharedStore, at};
use super::sdk_fixtures::{payment, tenant};
use tributary_domain::event::EventFilter;
use tributary_domain::exchange::{Rate, RateBase, RateQuery, RateValue};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;

fn rate(currency: &str, day: &str, units: &str) -> Rate {
    Rate {
        currency: Currency::from_stored(currency).expect("a currency"),
        day: Day::parse(day).expect("a day"),
        base: RateBase::Eur,
        units: RateValue::parse(units).expect("a rate"),
        source: "file".to_owned(),
    }
}

/// Returns the latest day with an imported rate for a currency.
async fn latest(store: &SharedStore, currency: &str) -> Option<Day> {
    let currency = Currency::from_stored(currency).expect("a currency");
    let day = store.latest_rate_day(currency).await;
    day.expect("rates are read")
}

/// Each currency has one rate per day. Unchanged rates are not counted as imported. The latest day
/// is tracked per currency.
pub async fn a_later_import_replaces_an_earlier_one(store: &SharedStore) {
    assert_eq!(latest(store, "USD").await, None);
    let first = vec![
        rate("USD", "2023-11-14", "1.1"),
        rate("JPY", "2023-11-15", "160"),
    ];
    let import = async |rates: Vec<Rate>| {
        let imported = store.import_rates(rates, at(0));
        imported.await.expect("rates are imported")
    };
    assert_eq!(import(first.clone()).await, 2);
    assert_eq!(import(first).await, 0);
    assert_eq!(
        import(vec![
            rate("USD", "2023-11-14", "1.2"),
            rate("USD", "2023-11-13", "1")
        ])
        .await,
        2
    );
    assert_eq!(import(Vec::new()).await, 0);
    for (currency, expected) in [
        ("USD", Some("2023-11-14")),
        ("JPY", Some("2023-11-15")),
        ("EUR", None),
    ] {
        let found = latest(store, currency).await.map(|day| day.to_string());
        assert_eq!(found.as_deref(), expected, "{currency}");
    }
}

/// Each query returns the latest rate on or before its day, or none.
pub async fn the_latest_rates_are_found(store: &SharedStore) {
    let query = |currency: &str, day: &str| RateQuery {
        currency: Currency::from_stored(currency).expect("a currency"),
        day: Day::parse(day).expect("a day"),
    };
    let rates = vec![
        rate("AED", "2026-10-01", "4.2"),
        rate("AED", "2026-10-03", "4.3"),
        rate("NGN", "2026-10-02", "1500"),
    ];
    let imported = store.import_rates(rates, at(0)).await;
    assert_eq!(imported.expect("rates are imported"), 3);
    let questions = vec![
        query("AED", "2026-10-02"),
        query("NGN", "2026-12-31"),
        query("NGN", "2026-10-01"),
        query("PKR", "2026-12-31"),
    ];
    let found = store.latest_rates(questions).await;
    let mut found = found.expect("rates are read");
    found.sort_by_key(|rate| rate.day);
    let expected = [
        rate("AED", "2026-10-01", "4.2"),
        rate("NGN", "2026-10-02", "1500"),
    ];
    assert_eq!(found, expected);
    let none = store.latest_rates(Vec::new()).await;
    assert_eq!(none.expect("rates are read"), []);
}

/// The European Central Bank's whole history has 220,000 rates; an import this long must work.
pub async fn a_long_history_is_imported(store: &SharedStore) {
    let day = |number| Day::from_days(10_000 + number);
    let rates: Vec<Rate> = (0..5_000)
        .map(|number| Rate {
            day: day(number),
            ..rate("JPY", "2023-11-14", "160")
        })
        .collect();
    let imported = store.import_rates(rates, at(0)).await;
    assert_eq!(imported.expect("rates are imported"), 5_000);
    assert_eq!(latest(store, "JPY").await, Some(day(4_999)));
}

/// An event keeps its exchange rate when the rate is imported again later. The events occur on
/// 2023-11-14 and use the latest earlier rates, from 2023-11-10.
pub async fn an_event_keeps_the_rate_it_was_recorded_with(store: &SharedStore) {
    let tenant = tenant(store).await;
    let import = async |units: &str| {
        let rates = vec![
            rate("XTS", "2023-11-10", units),
            rate("USD", "2023-11-10", "2"),
        ];
        store
            .import_rates(rates, at(0))
            .await
            .expect("rates are imported");
    };
    let pay = async |id: &str| {
        let accepted = store.accept_sdk_events(
            tenant.arrival("device-1", 20),
            vec![payment(id, "100", "XTS", 10)],
        );
        accepted.await.expect("an event is accepted");
    };
    import("4").await;
    pay("first").await;
    import("8").await;
    pay("second").await;
    let page = super::fixtures::first_page("10");
    let log = store
        .events(&tenant.reader, tenant.app.id, EventFilter::default(), page)
        .await
        .expect("the log is read");
    let mut found: Vec<_> = log
        .items
        .into_iter()
        .map(|event| {
            let revenue = event.revenue.expect("the event has revenue");
            let day = revenue.rate_day.expect("a rate was found").to_string();
            (
                event.external_id,
                revenue.usd.expect("the amount is converted").to_string(),
                day,
            )
        })
        .collect();
    found.sort();
    let expected = |id: &str, usd: &str| (id.to_owned(), usd.to_owned(), "2023-11-10".to_owned());
    assert_eq!(found, [expected("first", "50"), expected("second", "25")]);
}
