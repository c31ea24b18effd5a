//! Interleavings of `configure`, consent, events, planning and sending: no event of a refusing user
//! is sent.

use super::samples::{NOW, active, click, event};
use super::*;
use crate::device::{Device, DeviceKey, Tracking, Traits};
use crate::forwarding::conversion::Conversion;
use crate::forwarding::samples::pending;
use crate::install::DeviceState;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// What a user does with the app.
#[derive(Debug, Clone, Copy)]
enum UserAction {
    /// The app starts.
    Start,
    /// The user answers, or changes the answer.
    Answer(Consent),
    /// The app tracks an event.
    Track,
}

/// What arrives at the server, or happens there.
#[derive(Debug, Clone, Copy)]
enum Arrival {
    Configure(Consent),
    /// An event with its number and the consent when it was tracked.
    Event(usize, Consent),
    /// The device's events are credited again, and planned again.
    Replan,
    /// The forwarder sends what is pending.
    Forward,
}

fn consent() -> impl Strategy<Value = Consent> {
    let answer = || prop_oneof![Just(None), Just(Some(true)), Just(Some(false))];
    let tracking = prop_oneof![
        Just(None),
        Just(Some(Tracking::Authorized)),
        Just(Some(Tracking::Denied)),
        Just(Some(Tracking::NotDetermined)),
    ];
    (answer(), answer(), tracking).prop_map(|(ad_user_data, ad_personalization, tracking)| {
        Consent {
            ad_user_data,
            ad_personalization,
            tracking,
        }
    })
}

fn action() -> impl Strategy<Value = UserAction> {
    prop_oneof![
        1 => Just(UserAction::Start),
        2 => consent().prop_map(UserAction::Answer),
        3 => Just(UserAction::Track),
    ]
}

/// How often a request arrives, where in the order, and what the server does afterwards.
type Fate = (usize, prop::sample::Index, bool, bool);

fn fate() -> impl Strategy<Value = Fate> {
    (
        0..3_usize,
        any::<prop::sample::Index>(),
        any::<bool>(),
        any::<bool>(),
    )
}

/// Returns what arrives: requests are lost, repeated and reordered.
fn arrivals(actions: &[(UserAction, Fate)]) -> Vec<Arrival> {
    let mut consent = Consent::default();
    let mut arriving = Vec::new();
    for (number, (action, fate)) in actions.iter().enumerate() {
        let request = match action {
            UserAction::Start => Arrival::Configure(consent),
            UserAction::Answer(answer) => {
                consent = consent.updated(*answer);
                Arrival::Configure(consent)
            }
            UserAction::Track => Arrival::Event(number, consent),
        };
        let (copies, place, replans, forwards) = fate;
        for _ in 0..*copies {
            arriving.insert(place.index(arriving.len() + 1), request);
        }
        arriving.extend(replans.then_some(Arrival::Replan));
        arriving.extend(forwards.then_some(Arrival::Forward));
    }
    arriving.push(Arrival::Forward);
    arriving
}

/// The server's data about one device, with the rules that both engines use.
#[derive(Default)]
struct Server {
    state: DeviceState,
    events: BTreeMap<usize, Event>,
    pending: BTreeSet<usize>,
    finished: BTreeSet<usize>,
    sent: Vec<(usize, Sharing)>,
}

impl Server {
    fn device_consent(&self) -> Consent {
        let device = self.state.device.as_ref();
        device.map_or_else(Consent::default, |device| device.consent)
    }

    fn configure(&mut self, consent: Consent) {
        let before = self.device_consent();
        let consent = before.updated(consent);
        let refuses = |consent| Sharing::of(consent) == Sharing::Refused;
        if refuses(consent) && !refuses(before) {
            self.finished.append(&mut self.pending);
        }
        self.state.device = Some(Device {
            key: DeviceKey::stored("d".to_owned()),
            traits: Traits::of(crate::device::Platform::Ios),
            advertising_id: None,
            idfv: None,
            consent,
            country: None,
            first_seen_at: NOW,
            last_seen_at: NOW,
        });
    }

    fn plan(&mut self, number: usize, is_new: bool) {
        let Some(mut event) = self.events.remove(&number) else {
            return;
        };
        let (state, click, integrations) = (self.state.clone(), click(), [active(Network::A)]);
        let facts = DeviceFacts {
            state: &state,
            click: Some(&click),
            policy: MoneyPolicy::Count,
            now: NOW,
            requires_attestation: false,
        };
        let is_planned = if is_new {
            !facts.plan(&mut event, &integrations).planned.is_empty()
        } else {
            !facts.replan(&mut event, &integrations).planned.is_empty()
        };
        if !is_planned {
            self.pending.remove(&number);
        } else if !self.finished.contains(&number) {
            self.pending.insert(number);
        }
        self.events.insert(number, event);
    }

    fn forward(&mut self) {
        for number in std::mem::take(&mut self.pending) {
            let event = self.events[&number].clone();
            let conversion = Conversion::new(&pending(1), event, None, self.state.clone());
            if conversion.sharing() != Sharing::Refused {
                self.sent.push((number, conversion.sharing()));
            }
            self.finished.insert(number);
        }
    }

    fn handle(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Configure(consent) => self.configure(consent),
            Arrival::Event(number, consent) => {
                let is_new = !self.events.contains_key(&number);
                if is_new {
                    let mut event = event("sign_up");
                    event.consent = Some(consent);
                    self.events.insert(number, event);
                    self.plan(number, true);
                }
            }
            Arrival::Replan => {
                for number in self.events.keys().copied().collect::<Vec<_>>() {
                    self.plan(number, false);
                }
            }
            Arrival::Forward => self.forward(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_event_of_a_refusing_user_is_sent(
        actions in prop::collection::vec((action(), fate()), 1..16),
    ) {
        let mut server = Server::default();
        let mut tracked = BTreeMap::new();
        for arrival in arrivals(&actions) {
            if let Arrival::Event(number, consent) = arrival {
                tracked.insert(number, consent);
            }
            let before = server.sent.len();
            let device = server.device_consent();
            server.handle(arrival);
            for (number, sharing) in &server.sent[before..] {
                for consent in [tracked[number], device] {
                    prop_assert_ne!(Sharing::of(consent), Sharing::Refused);
                }
                prop_assert_eq!(*sharing, Sharing::of(tracked[number].stricter(device)));
            }
        }
    }
}
