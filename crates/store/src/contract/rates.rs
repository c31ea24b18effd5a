//! Exchange rates.

use super::fixtures::{SharedStore, at};
use super::sdk_fixtures::{payment, tenant};
use tributary_domain::event::EventFilter;
use tributary_domain::exchange::{Day, Rate, RateBase, RateValue};
use tributary_domain::vocabulary::currency::Currency;

fn rate(currency: &str, day: &str, units: &str) -> Rate {
    Rate {
        currency: Currency::stored(currency).expect("a currency"),
        day: Day::parse(day).expect("a day"),
        base: RateBase::Eur,
        units: RateValue::parse(units).expect("a rate"),
        source: "file".to_owned(),
    }
}

/// One rate a currency and day; what does not differ is not counted.
pub async fn a_later_import_replaces_an_earlier_one(store: &SharedStore) {
    assert_eq!(store.latest_rate_day().await.expect("rates are read"), None);
    let first = vec![
        rate("USD", "2023-11-14", "1.1"),
        rate("JPY", "2023-11-14", "160"),
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
    let latest = store.latest_rate_day().await.expect("rates are read");
    assert_eq!(latest, Some(Day::parse("2023-11-14").expect("a day")));
}

/// Many at once: the bank's whole history has 220,000.
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
    let latest = store.latest_rate_day().await.expect("rates are read");
    assert_eq!(latest, Some(day(4_999)));
}

/// The fixtures' day is 2023-11-14. An event keeps the rate it was recorded with.
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
            let revenue = event.revenue.expect("it carries money");
            let day = revenue.rate_day.expect("a rate was found").to_string();
            (
                event.given_id,
                revenue.usd.expect("it is in dollars").to_string(),
                day,
            )
        })
        .collect();
    found.sort();
    let expected = |id: &str, usd: &str| (id.to_owned(), usd.to_owned(), "2023-11-10".to_owned());
    assert_eq!(found, [expected("first", "50"), expected("second", "25")]);
}
