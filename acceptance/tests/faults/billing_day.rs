//! A billing provider that repeats a day of notifications: in reverse, shuffled, twice and over many
//! connections at once. The result is the same as if each had arrived once and in order.

use crate::billing::{Shop, event, with, with_payment};
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha12Rng;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::time::Duration;
use tributary_testkit::{TestServer, on_both_engines};

/// Subscribers. Every second one has a device.
const SUBSCRIBERS: usize = 64;
/// Requests at a time. Providers send about as many.
const CONCURRENCY: usize = 12;
/// Times that the whole day is repeated.
const REPEATS: usize = 3;
/// Minutes of a day.
const DAY: i64 = 24 * 60;
/// Maximum time to repeat a notification while the server is unavailable.
const REPEAT_MAX: Duration = Duration::from_secs(30);
/// Share of the notifications that a repeat contains twice: one in this many.
const TWICE: usize = 5;

/// A subscriber's notifications.
struct Subscriber {
    name: String,
    number: usize,
}

impl Subscriber {
    /// Addresses a notification to the subscriber.
    fn about(&self, notification: Value) -> Value {
        let device = format!("phone-{}", self.number);
        let attributes = if self.number.is_multiple_of(2) {
            json!({"tributaryId": {"value": device, "updated_at_ms": crate::website::START}})
        } else {
            json!({})
        };
        let own = json!({
            "id": format!("{}-{}", self.name, notification["id"].as_str().unwrap()),
            "app_user_id": self.name, "original_app_user_id": self.name, "aliases": [self.name],
            "original_transaction_id": format!("sub-{}", self.name), "subscriber_attributes": attributes,
        });
        with(notification, own)
    }

    fn paid(&self, kind: &str, id: &str, minute: i64, price: f64) -> Value {
        let transaction = format!("{}-t{id}", self.name);
        self.about(with_payment(event(kind, id, minute), &transaction, price))
    }

    /// Returns a day of notifications in order.
    fn day(&self, random: &mut ChaCha12Rng) -> Vec<Value> {
        let start = random.random_range(0..DAY / 2);
        let at = |step: i64| start + step * 60;
        let is_trial = random.random_bool(0.5);
        let mut day = Vec::new();
        if is_trial {
            let trial = self.about(with(
                event("INITIAL_PURCHASE", "0", at(0)),
                json!({"period_type": "TRIAL", "transaction_id": format!("{}-t0", self.name)}),
            ));
            let conversion = self.paid("RENEWAL", "1", at(1), 9.99);
            day.extend([
                trial,
                with(conversion, json!({"is_trial_conversion": true})),
            ]);
        } else {
            day.push(self.paid("INITIAL_PURCHASE", "1", at(1), 9.99));
        }
        for step in 2..random.random_range(3..7) {
            day.push(self.paid("RENEWAL", &step.to_string(), at(step), 9.99));
        }
        if random.random_bool(0.4) {
            let yearly = json!({"product_id": "pro.yearly"});
            day.push(with(
                self.about(event("PRODUCT_CHANGE", "change", at(7))),
                yearly.clone(),
            ));
            day.push(with(self.paid("RENEWAL", "7", at(8), 49.99), yearly));
        }
        if random.random_bool(0.5) {
            let refund = event("CANCELLATION", "refund", at(9));
            let refund = with(refund, json!({"cancel_reason": "CUSTOMER_SUPPORT"}));
            let refund = with_payment(refund, &format!("{}-t2", self.name), -9.99);
            day.push(self.about(refund));
            if random.random_bool(0.3) {
                let reversed = event("REFUND_REVERSED", "reversed", at(10));
                let reversed = with_payment(reversed, &format!("{}-t2", self.name), 9.99);
                day.push(self.about(reversed));
            }
        }
        match random.random_range(0..4) {
            0 => day.push(self.about(event("EXPIRATION", "end", at(11)))),
            1 => day.push(self.about(event("BILLING_ISSUE", "issue", at(11)))),
            2 => day.push(self.paid("NON_RENEWING_PURCHASE", "gems", at(11), 1.99)),
            _ => {}
        }
        day
    }
}

/// Moves the purchases of a subscriber to the next one.
fn transfer(number: usize, minute: i64) -> Value {
    json!({
        "type": "TRANSFER", "id": format!("transfer-{number}"), "environment": "PRODUCTION",
        "store": "PLAY_STORE", "event_timestamp_ms": crate::website::START + minute * 60_000,
        "transferred_from": [format!("s{number}")], "transferred_to": [format!("s{}", number + 1)],
    })
}

/// Returns the notifications of a day, by time.
fn day() -> Vec<Value> {
    let mut random = ChaCha12Rng::seed_from_u64(1);
    let mut all = Vec::new();
    for number in 0..SUBSCRIBERS {
        let name = format!("s{number}");
        all.extend(Subscriber { name, number }.day(&mut random));
    }
    // Without a device of its own, a subscriber gets the device of the one before it.
    all.extend(
        (0..SUBSCRIBERS)
            .step_by(8)
            .map(|number| transfer(number, DAY - 1)),
    );
    all.sort_by_key(|one| one["event_timestamp_ms"].as_i64().unwrap());
    all
}

async fn open(server: &TestServer) -> Shop<'_> {
    let shop = Shop::open(server).await;
    shop.connect().await;
    for number in (0..SUBSCRIBERS).step_by(2) {
        shop.install(&format!("phone-{number}")).await;
    }
    shop
}

/// Sends notifications over several connections at once.
async fn send_all(shop: &Shop<'_>, notifications: Vec<Value>) {
    let queue = Mutex::new(VecDeque::from(notifications));
    let next = || queue.lock().unwrap().pop_front();
    let sender = || async {
        while let Some(one) = next() {
            let begun = std::time::Instant::now();
            // The provider repeats what was not answered with success.
            let answer = loop {
                let answer = shop.send(&one).await;
                let is_over = begun.elapsed() > REPEAT_MAX;
                if answer.status != 503 || is_over {
                    break answer;
                }
            };
            answer.expect(200);
        }
    };
    let senders: Vec<_> = (0..CONCURRENCY).map(|_| sender()).collect();
    join_all(senders).await;
}

/// Awaits all futures on this task.
async fn join_all<F: Future<Output = ()>>(futures: Vec<F>) {
    let mut waiting: Vec<_> = futures.into_iter().map(Box::pin).collect();
    std::future::poll_fn(|context| {
        waiting.retain_mut(|one| one.as_mut().poll(context).is_pending());
        if waiting.is_empty() {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
}

/// What a day of notifications leads to.
#[derive(Debug, PartialEq)]
struct Outcome {
    events: BTreeMap<String, Value>,
    figures: BTreeMap<String, String>,
    days: Value,
    deliveries: BTreeMap<String, String>,
}

/// Returns the event log, without what differs between apps.
async fn events(shop: &Shop<'_>) -> (BTreeMap<String, Value>, BTreeMap<String, String>) {
    let (mut events, mut deliveries) = (BTreeMap::new(), BTreeMap::new());
    let mut cursor = String::new();
    loop {
        let path = format!("{}/events?limit=500{cursor}", shop.app);
        let page = shop.server.get(&path, &shop.key).await.expect(200).json();
        for one in page["data"].as_array().unwrap() {
            let id = one["eventId"].as_str().unwrap().to_owned();
            if one["name"] == "install" {
                continue;
            }
            for delivery in one["deliveries"].as_array().unwrap() {
                // Whether a delivery was planned and cancelled depends on what arrived first.
                if delivery["status"] == "pending" {
                    deliveries.insert(
                        format!("{id} {}", delivery["networkEvent"]),
                        "pending".to_owned(),
                    );
                }
            }
            let kept = json!({
                "name": one["name"], "revenue": one["revenue"], "network": one["attribution"]["network"],
                "device": one["deviceId"], "occurredAt": one["occurredAt"], "params": one["params"],
                "originalTransactionId": one["originalTransactionId"],
            });
            let earlier = events.insert(id.clone(), kept);
            assert_eq!(earlier, None, "{id} is stored once");
        }
        match page["meta"]["cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return (events, deliveries),
        }
    }
}

async fn outcome(shop: &Shop<'_>) -> Outcome {
    let (events, deliveries) = events(shop).await;
    let figures = shop.figures().await.into_iter();
    let days = format!("{}/stats?groupBy=day,network", shop.app);
    let days = shop.server.get(&days, &shop.key).await.expect(200).json();
    Outcome {
        events,
        figures: figures
            .map(|(network, one)| (network, format!("{one:?}")))
            .collect(),
        days: json!([days["data"], days["meta"]["totals"]]),
        deliveries,
    }
}

on_both_engines! {
    async fn a_day_of_notifications_may_be_repeated_in_any_order(engine: Engine) {
        let server = TestServer::start(engine).await;
        let (calm, wild) = (open(&server).await, open(&server).await);
        server.clock.advance(Duration::from_hours(30));
        let day = day();
        for one in &day {
            assert!(!calm.send_accepted(one).await, "{one}");
        }
        let expected = outcome(&calm).await;
        let mut random = ChaCha12Rng::seed_from_u64(2);
        for repeat in 0..REPEATS {
            let mut again = day.clone();
            again.reverse();
            let twice: Vec<Value> = day.iter().step_by(TWICE).cloned().collect();
            again.extend(twice);
            if repeat > 0 {
                again.shuffle(&mut random);
            }
            send_all(&wild, again).await;
            let found = outcome(&wild).await;
            for (id, event) in &expected.events {
                assert_eq!(found.events.get(id), Some(event), "repeat {repeat}: {id}");
            }
            assert_eq!(found, expected, "repeat {repeat}");
        }
        println!("{engine:?}: {} notifications, {} events, {:?}", day.len(), expected.events.len(), expected.figures);
        assert!(day.len() > 300, "{}", day.len());
        // The comparison sees a lost notification: without the last payment, the figures differ.
        let other = open(&server).await;
        let last = day.iter().rposition(|one| one["type"] == "RENEWAL").unwrap();
        let fewer = day.iter().enumerate().filter(|(place, _)| *place != last);
        send_all(&other, fewer.map(|(_, one)| one.clone()).collect()).await;
        let lost = outcome(&other).await;
        assert_ne!(lost.figures, expected.figures);
        assert_ne!(lost.days, expected.days);
    }
}
