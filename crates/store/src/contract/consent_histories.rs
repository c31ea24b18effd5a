//! Random histories of devices whose users grant, refuse and withdraw consent, while requests are
//! reordered, repeated and lost. No event of a refusing user reaches a network.

use super::fixtures::{SharedStore, at};
use super::outbox_fixtures::{ForwardingApp, LEASE, ends_with, forwarding_app, settled};
use super::sdk_fixtures::event;
use std::collections::BTreeMap;
use tributary_domain::device::{Consent, Tracking};
use tributary_domain::event::sdk::SdkEvent;
use tributary_domain::forwarding::{AttemptVerdict, Conversion, DeliveryStatus, Sharing};

/// Number of devices, each with its own history.
const DEVICES: usize = 40;
/// Actions of an app on one device.
const ACTIONS: usize = 10;

/// A source of numbers that repeats itself for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % sides
    }

    fn consent(&mut self) -> Consent {
        let mut answer = |sides| match self.roll(sides) {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        };
        let (ad_user_data, ad_personalization) = (answer(3), answer(4));
        let trackings = [None, Some(Tracking::Authorized), Some(Tracking::Denied)];
        Consent {
            ad_user_data,
            ad_personalization,
            tracking: trackings[self.roll(3)],
        }
    }
}

/// A request of a device.
#[derive(Clone)]
enum Request {
    Configure(Consent),
    Track(SdkEvent),
}

/// Returns the requests of a device as they arrive, and the consent of each of its events.
fn requests(dice: &mut Dice, device: usize) -> (Vec<Request>, BTreeMap<String, Consent>) {
    let mut consent = Consent::default();
    let mut tracked = BTreeMap::new();
    let mut sent = Vec::new();
    for number in 0..ACTIONS {
        match dice.roll(5) {
            0 => sent.push(Request::Configure(consent)),
            1 => {
                consent = consent.updated(dice.consent());
                sent.push(Request::Configure(consent));
            }
            _ => {
                let id = format!("{device}-{number}");
                tracked.insert(id.clone(), consent);
                let event = event(&id, "sign_up", 10);
                sent.push(Request::Track(SdkEvent {
                    consent: Some(consent),
                    ..event
                }));
            }
        }
    }
    let mut arriving = Vec::new();
    for request in sent {
        // The first call decides the install, so it is never lost: the app repeats it.
        let copies = match dice.roll(6) {
            0 if !arriving.is_empty() => 0,
            1 | 2 => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let place = arriving.len().saturating_sub(dice.roll(4));
            arriving.insert(place, request.clone());
        }
    }
    (arriving, tracked)
}

/// What the server knows about a device.
#[derive(Default)]
struct KnownDevice {
    /// Consent of the first call and the current one.
    consent: Option<(Consent, Consent)>,
}

struct History {
    one: ForwardingApp,
    known: BTreeMap<String, KnownDevice>,
    tracked: BTreeMap<String, Consent>,
    second: i64,
    sent: usize,
}

impl History {
    async fn receive(&mut self, device: &str, request: Request) {
        self.second += 1;
        let tenant = &self.one.tenant;
        match request {
            Request::Track(event) => {
                let arrival = tenant.arrival(device, self.second);
                let accepted = tenant.store.accept_sdk_events(arrival, vec![event]);
                accepted.await.expect("events are accepted");
            }
            Request::Configure(consent) => {
                let known = self.known.entry(device.to_owned()).or_default();
                let mut command = match known.consent {
                    None => {
                        let click = tenant.record_click(self.second - 1).await;
                        tenant.configure_with_click(device, &click, self.second)
                    }
                    Some(_) => tenant.configure(device, self.second),
                };
                command.consent = consent;
                tenant.call_configure(command).await;
                let (first, now) = known.consent.unwrap_or((consent, consent));
                known.consent = Some((first, now.updated(consent)));
            }
        }
    }

    /// Sends what is due, as the forwarder does.
    async fn forward(&mut self) {
        self.second += 10;
        let (one, second) = (&self.one, self.second);
        let leased = one.lease(LEASE, second, second + 5).await;
        leased.expect("a lease");
        let due = one.take_due(LEASE, second).await.expect("deliveries");
        let gathered = one.tenant.store.gather_conversions(one.queue, due);
        let mut outcomes = Vec::new();
        for pending in gathered.await.expect("conversions") {
            let conversion = pending.conversion.expect("its event");
            let refused = conversion.sharing() == Sharing::Refused;
            if !refused {
                self.sent += 1;
                self.check(&conversion);
            }
            let (verdict, status) = if refused {
                (AttemptVerdict::Terminal, DeliveryStatus::Cancelled)
            } else {
                (AttemptVerdict::Delivered, DeliveryStatus::Delivered)
            };
            let end = ends_with(status);
            outcomes.push(settled(&pending.pending, verdict, end, at(second)));
        }
        let settlement = one.settlement(outcomes, second);
        assert!(one.settle(LEASE, settlement).await);
    }

    /// Checks that neither the user's consent when the event was tracked nor the device's current
    /// one refuses, and that the network gets no more than both allow.
    fn check(&self, conversion: &Conversion) {
        let event = &conversion.event;
        let device = event.device.as_ref().expect("a device").as_str();
        let (first, now) = self.known[device].consent.expect("a configured device");
        let when_tracked = if event.is_service_install {
            first
        } else {
            self.tracked[&event.external_id]
        };
        for consent in [when_tracked, now] {
            assert_ne!(Sharing::of(consent), Sharing::Refused, "{event:?}");
        }
        let expected = if event.is_service_install && !first.is_reported() {
            now
        } else {
            when_tracked.stricter(now)
        };
        assert_eq!(conversion.sharing(), Sharing::of(expected), "{event:?}");
    }
}

/// No event that was tracked after a refusal is sent, and none after a withdrawal arrived.
pub async fn no_event_of_a_refusing_user_is_sent(store: &SharedStore) {
    let mut dice = Dice(7);
    let mut history = History {
        one: forwarding_app(store).await,
        known: BTreeMap::new(),
        tracked: BTreeMap::new(),
        second: 10,
        sent: 0,
    };
    let mut queues = Vec::new();
    for device in 0..DEVICES {
        let (arriving, tracked) = requests(&mut dice, device);
        history.tracked.extend(tracked);
        queues.push((format!("device-{device}"), arriving.into_iter()));
    }
    while !queues.is_empty() {
        let place = dice.roll(queues.len());
        let (device, requests) = &mut queues[place];
        match requests.next() {
            Some(request) => history.receive(&device.clone(), request).await,
            None => {
                queues.remove(place);
            }
        }
        if dice.roll(8) == 0 {
            history.forward().await;
        }
    }
    history.forward().await;
    assert!(history.sent > DEVICES, "{} events were sent", history.sent);
    let refused: Vec<String> = history
        .one
        .delivery_statuses()
        .await
        .into_iter()
        .filter(|(_, status, _)| *status != "cancelled")
        .filter_map(|(id, _, _)| {
            let consent = history.tracked.get(&id)?;
            (Sharing::of(*consent) == Sharing::Refused).then_some(id)
        })
        .collect();
    assert_eq!(refused, Vec::<String>::new());
}
