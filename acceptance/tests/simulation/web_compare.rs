//! Compares the stored data with the model: the log, its amounts and the roll-ups.

use super::web_cases::CLICKS;
use super::web_model::{Kind, Model, Post, dollars};
use crate::website::micros;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tributary_domain::report::Figures;

const NETWORKS: [&str; CLICKS] = ["network_a", "network_b", "network_c", "network_d"];

/// Checks that the stored data equals the model.
pub(super) fn check_stored(
    log: &[Value],
    figures: &BTreeMap<String, Figures>,
    clicks: &[String],
    model: &Model,
) -> Result<(), String> {
    compare_log(log, clicks, model)?;
    compare_money(log, model)?;
    compare_figures(figures, model)
}

/// Compares the events: each stored once and as sent, with its credit and whether it counts.
fn compare_log(log: &[Value], clicks: &[String], model: &Model) -> Result<(), String> {
    let mut found: BTreeMap<&str, Value> = BTreeMap::new();
    for event in log {
        let money = &event["revenue"];
        let facts = json!([
            event["name"],
            event["deviceId"],
            event["timestampMs"],
            event["attribution"]["clickId"],
            event["attribution"]["network"],
            money["currency"],
            money["counted"],
            money["reason"],
            if money.is_null() {
                Value::Null
            } else {
                json!(micros(&money["amount"]))
            },
        ]);
        if found
            .insert(event["eventId"].as_str().unwrap(), facts)
            .is_some()
        {
            return Err(format!("stored twice: {event}"));
        }
    }
    let expected: BTreeMap<&str, Value> = model
        .0
        .values()
        .map(|post| {
            let click = model.credited_click(post).unwrap();
            let head = [
                json!(post.kind.name()),
                json!(format!("device-{}", post.device)),
                json!(post.at),
            ];
            let credit = [json!(clicks[click]), json!(NETWORKS[click])];
            let money = if post.kind == Kind::SignUp {
                [Value::Null, Value::Null, Value::Null, Value::Null]
            } else {
                let reason = model.reason(post);
                [
                    json!(post.currency),
                    json!(reason.is_none()),
                    json!(reason),
                    json!(post.micros),
                ]
            };
            (
                post.id.as_str(),
                json!([head.as_slice(), &credit, &money].concat()),
            )
        })
        .collect();
    if found != expected {
        return Err(format!(
            "the log is\n{found:?}\nand should be\n{expected:?}"
        ));
    }
    Ok(())
}

/// Compares the dollars: each payment's own, and the sum of its refunds, which does not depend on
/// their order.
fn compare_money(log: &[Value], model: &Model) -> Result<(), String> {
    let usd = |event: &Value| micros(&event["revenue"]["usd"]);
    let event_of = |post: &Post| {
        log.iter()
            .find(|event| event["eventId"] == post.id.as_str())
            .unwrap()
    };
    for (payment, paid, refunded) in model.counted_payments() {
        let refunds = model
            .0
            .values()
            .filter(|post| post.kind == Kind::Refund && post.parent.as_ref() == Some(&payment.id));
        let stored_refunds: i64 = refunds.map(|post| usd(event_of(post))).sum();
        if usd(event_of(payment)) != paid || stored_refunds != -refunded {
            return Err(format!(
                "{paid} paid and {refunded} refunded, but the log has {} and {stored_refunds}: {payment:?}",
                usd(event_of(payment))
            ));
        }
        if model.refunded(&payment.id) == payment.micros && refunded != paid {
            return Err(format!("a full refund does not net to zero: {payment:?}"));
        }
    }
    let unconvertible = model
        .0
        .values()
        .filter(|post| post.kind.is_payment() && dollars(post.micros, post.currency).is_none());
    for post in unconvertible {
        if !event_of(post)["revenue"]["usd"].is_null() {
            return Err(format!("dollars without an exchange rate: {post:?}"));
        }
    }
    Ok(())
}

/// Compares the roll-ups with the sums over the model.
fn compare_figures(found: &BTreeMap<String, Figures>, model: &Model) -> Result<(), String> {
    let mut expected: BTreeMap<String, Figures> = NETWORKS
        .iter()
        .map(|network| {
            (
                (*network).to_owned(),
                Figures {
                    clicks: 1,
                    ..Figures::default()
                },
            )
        })
        .collect();
    let network = |post: &Post| NETWORKS[model.credited_click(post).unwrap()];
    for post in model.0.values() {
        let figures = expected.get_mut(network(post)).unwrap();
        figures.events += 1;
        match post.kind {
            Kind::Purchase => figures.purchases += 1,
            Kind::Renewal => figures.renewals += 1,
            Kind::Refund => figures.refunds += 1,
            Kind::SignUp => figures.sign_ups += 1,
            Kind::Trial => figures.trials += 1,
            Kind::Checkout => {}
        }
    }
    for (payment, paid, refunded) in model.counted_payments() {
        let figures = expected.get_mut(network(payment)).unwrap();
        figures.revenue_micros += paid;
        figures.refunded_micros += refunded;
    }
    // The order decides which payment of a device is its first, and so which network counts it.
    let mut found = found.clone();
    let paying: i64 = found
        .values_mut()
        .map(|figures| std::mem::take(&mut figures.paying_devices))
        .sum();
    let devices = i64::try_from(model.paying_devices()).unwrap();
    if found != expected || paying != devices {
        return Err(format!(
            "the roll-ups are\n{found:?}, {paying} paying\nand should be\n{expected:?}, {devices} paying"
        ));
    }
    Ok(())
}
