//! Makes a scenario from a seed.

use crate::disk::{DiskCall, DiskError, DiskFault, FileKind};
use crate::rng::Rng;
use crate::scenario::{
    BillingKind, Element, End, EndKind, Keys, NetworkFault, NetworkFaultKind, Request, Scenario,
    WebKind,
};

/// Devices that the requests share.
const DEVICES: u64 = 5;
/// Subscriptions that the notifications share. Each belongs to one device.
const SUBSCRIPTIONS: u64 = 3;
/// Prices in cents.
const PRICES: [u64; 3] = [100, 999, 4_999];
/// How often, in percent, a request is of the test environment.
const TEST_PERCENT: u64 = 15;

/// Makes the scenario of a seed.
pub fn generate(seed: u64) -> Scenario {
    let mut random = Rng::new(seed, "scenario");
    let clients = random.index(4) + 1;
    let mut generator = Generator {
        elements: Vec::new(),
        taps: Vec::new(),
        purchases: Vec::new(),
        random,
    };
    for _ in 0..generator.random.between(8, 40) {
        generator.add_request(clients);
    }
    generator.add_faults();
    let mut random = generator.random;
    Scenario {
        seed,
        clients,
        leak_percent: *random.choose(&[0, 10, 50, 90]),
        log_pages_max: u32::try_from(*random.choose(&[10, 40, 4_000])).unwrap_or(40),
        elements: generator.elements,
    }
}

struct Generator {
    elements: Vec<(u32, Element)>,
    taps: Vec<u32>,
    purchases: Vec<(u32, u64, Keys)>,
    random: Rng,
}

impl Generator {
    fn number(&self) -> u32 {
        u32::try_from(self.elements.len()).unwrap_or(u32::MAX)
    }

    fn add(&mut self, element: Element) {
        let number = self.number();
        self.elements.push((number, element));
    }

    fn keys(&mut self) -> Keys {
        if self.random.percent(TEST_PERCENT) {
            Keys::Test
        } else {
            Keys::Live
        }
    }

    fn add_request(&mut self, clients: usize) {
        let number = self.number();
        let request = match self.random.below(100) {
            0..12 => {
                self.taps.push(number);
                Request::Tap {
                    network: self.random.index(4),
                }
            }
            12..24 => self.configure(),
            24..34 => Request::SdkEvents {
                device: self.random.below(DEVICES),
                count: self.random.between(1, 3),
                keys: self.keys(),
            },
            34..72 => self.web_event(number),
            72..86 => self.billing(),
            86..90 => Request::Erase,
            90..92 => Request::Report,
            92..94 => Request::HoldSnapshot {
                millis: self.random.between(10, 4_000),
            },
            94..97 => Request::Wait {
                millis: self.random.between(100, 20_000),
            },
            _ => self.jump(),
        };
        let client = self.random.index(clients);
        self.add(Element::Request { client, request });
    }

    fn configure(&mut self) -> Request {
        let tap = if self.taps.is_empty() || self.random.percent(25) {
            None
        } else {
            Some(*self.random.choose(&self.taps))
        };
        Request::Configure {
            device: self.random.below(DEVICES),
            tap,
            keys: self.keys(),
        }
    }

    fn web_event(&mut self, number: u32) -> Request {
        let cents = *self.random.choose(&PRICES);
        let network = self.random.index(4);
        let device = self.random.below(DEVICES);
        let parent = if self.purchases.is_empty() {
            None
        } else {
            Some(*self.random.choose(&self.purchases))
        };
        let (kind, id_of, parent, cents, keys) = match (self.random.below(100), parent) {
            // Another content under an id that is in use.
            (0..6, Some((other, price, keys))) => (WebKind::Purchase, other, None, price + 1, keys),
            (6..20, Some((parent, _, keys))) => {
                (WebKind::Renewal, number, Some(parent), cents, keys)
            }
            (20..65, Some((parent, price, keys))) => {
                let part = *self.random.choose(&[price, price / 2, price / 2 + 1]);
                (WebKind::Refund, number, Some(parent), part, keys)
            }
            (65..75, _) => (WebKind::SignUp, number, None, 0, self.keys()),
            _ => {
                let keys = self.keys();
                self.purchases.push((number, cents, keys));
                (WebKind::Purchase, number, None, cents, keys)
            }
        };
        Request::Web {
            kind,
            id_of,
            parent,
            cents,
            network,
            device,
            keys,
        }
    }

    fn billing(&mut self) -> Request {
        let subscription = self.random.below(SUBSCRIPTIONS);
        let (kind, payment) = match self.random.below(4) {
            0 | 1 => (BillingKind::Initial, 0),
            2 => (BillingKind::Renewal, self.random.between(1, 3)),
            _ => (BillingKind::Refund, 0),
        };
        Request::Billing {
            kind,
            subscription,
            payment,
            // A transaction has one price.
            cents: 999,
            keys: self.keys(),
        }
    }

    fn jump(&mut self) -> Request {
        let millis = match self.random.below(4) {
            0 => self.random.between(1, 2_000),
            1 | 2 => self.random.between(10_000, 300_000),
            _ => self.random.between(3_600_000, 90_000_000),
        };
        let millis = i64::try_from(millis).unwrap_or(0);
        Request::JumpClock {
            millis: if self.random.percent(50) {
                -millis
            } else {
                millis
            },
        }
    }

    fn add_faults(&mut self) {
        for _ in 0..self.random.below(6) {
            let kind = *self.random.choose(&[
                EndKind::Kill,
                EndKind::PowerCut,
                EndKind::PowerCut,
                EndKind::Stop,
            ]);
            let point = match self.random.below(3) {
                0 => self.random.between(1, 80),
                1 => self.random.between(1, 300),
                _ => self.random.between(1, 700),
            };
            self.add(Element::End(End { kind, point }));
        }
        if self.random.percent(50) {
            for _ in 0..self.random.between(1, 4) {
                let fault = self.disk_fault();
                self.add(Element::Disk(fault));
            }
        }
        if self.random.percent(70) {
            for _ in 0..self.random.between(1, 8) {
                let fault = self.network_fault();
                self.add(Element::Network(fault));
            }
        }
        if self.random.percent(20) {
            let (step, millis) = (self.random.between(1, 40), self.random.between(50, 14_000));
            self.add(Element::Stall { step, millis });
        }
    }

    fn disk_fault(&mut self) -> DiskFault {
        let file = *self
            .random
            .choose(&[FileKind::Log, FileKind::Log, FileKind::Database]);
        let call = *self.random.choose(&[
            DiskCall::Write,
            DiskCall::Sync,
            DiskCall::Sync,
            DiskCall::Truncate,
            DiskCall::Read,
        ]);
        let error = match call {
            DiskCall::Write => {
                *self
                    .random
                    .choose(&[DiskError::Io, DiskError::Full, DiskError::Short])
            }
            _ => DiskError::Io,
        };
        let nth_max = match (file, call) {
            (FileKind::Log, DiskCall::Write) => 300,
            (_, DiskCall::Read) => 200,
            (FileKind::Log, DiskCall::Sync) => 40,
            (FileKind::Database, DiskCall::Write) => 60,
            _ => 6,
        };
        DiskFault {
            file,
            call,
            nth: self.random.between(1, nth_max),
            times: *self.random.choose(&[1, 1, 2, 10]),
            error,
        }
    }

    fn network_fault(&mut self) -> NetworkFault {
        let kind = match self.random.below(9) {
            0 => NetworkFaultKind::NotSent,
            1 => NetworkFaultKind::RequestLost,
            2 | 3 => NetworkFaultKind::AnswerLost,
            4 => NetworkFaultKind::Status(*self.random.choose(&[500, 503])),
            5 => NetworkFaultKind::Status(429),
            6 => NetworkFaultKind::Twice,
            7 => NetworkFaultKind::Late {
                millis: self.random.between(1, 600_000),
            },
            _ => NetworkFaultKind::Slow {
                millis: self.random.between(1_000, 40_000),
            },
        };
        NetworkFault {
            request: self.random.between(1, 20),
            kind,
        }
    }
}
