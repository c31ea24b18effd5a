//! A month of an app, made up: a daily rhythm, campaigns, bots, trials, payments in several currencies, renewals and
//! refunds. The same seed and size give the same month, of any size, a day at a time.

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::net::IpAddr;
use std::sync::Arc;
use tributary_domain::access::Environment;
use tributary_domain::app::AttributionRules;
use tributary_domain::attribution::evidence::{Delivery, ReferrerTimes};
use tributary_domain::click::address::AddressClass;
use tributary_domain::click::agent::Agent;
use tributary_domain::click::params::Captured;
use tributary_domain::click::{BotReason, Click};
use tributary_domain::device::{Consent, DeviceKey, Identity, Platform, Traits, UserKey};
use tributary_domain::event::sdk::{Arrival, SdkEvent};
use tributary_domain::event::web::{Posted, WebEventKind};
use tributary_domain::install::{Claim, ClaimedClick, Configure};
use tributary_domain::integration::Network;
use tributary_domain::ledger::MoneyPolicy;
use tributary_domain::link::Campaign;
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::id::{AppId, AttributionId, ClickId, EventId, LinkId};
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::web_url::HttpsUrl;
use tributary_store::{Store, StoreResult};

const HOUR_MILLIS: i64 = 60 * 60 * 1_000;
const DAY_MILLIS: i64 = 24 * HOUR_MILLIS;
/// How much happens in each hour of a day.
const RHYTHM: [u32; 24] = [
    2, 1, 1, 1, 1, 2, 3, 5, 6, 6, 6, 7, 8, 7, 6, 6, 7, 8, 9, 10, 10, 9, 6, 4,
];
/// Of a thousand devices, how many come back at an age in days; older ones as the last.
const BACK: [u32; 14] = [
    1_000, 400, 300, 250, 200, 200, 200, 140, 140, 140, 140, 140, 140, 90,
];
/// Events of a device in such a month, about.
const EVENTS_PER_DEVICE: u64 = 22;
const COUNTRIES: [&str; 10] = ["US", "US", "DE", "GB", "FR", "BR", "IN", "JP", "ES", "NL"];
const NAMES: [&str; 8] = [
    "view_content",
    "search",
    "level_complete",
    "add_to_cart",
    "open_screen",
    "open_screen",
    "share",
    "rate_app",
];
const PRICES: [(&str, &str); 8] = [
    ("1.99", "USD"),
    ("4.99", "USD"),
    ("9.99", "USD"),
    ("49.99", "USD"),
    ("8.99", "EUR"),
    ("7.49", "GBP"),
    ("650", "JPY"),
    ("2500", "USD"),
];
/// Where the website is that some of them pay on.
const SHOP: &str = "https://shop.example.com";

/// What a month is made up for.
#[derive(Debug, Clone)]
pub struct Month {
    /// Of which app.
    pub app: AppId,
    /// Its rules.
    pub rules: AttributionRules,
    /// Links that lead to the app.
    pub links: Vec<LinkId>,
    /// The link that leads to the website `https://shop.example.com`.
    pub funnel: LinkId,
    /// Live or test.
    pub environment: Environment,
    /// The first moment of the first day, in UTC.
    pub begin: Timestamp,
    /// How many days.
    pub days: u32,
    /// How many events, about.
    pub events: u64,
    /// What it is made of.
    pub seed: u64,
}

/// Something that happens, as the store takes it.
#[derive(Debug, Clone)]
pub enum Step {
    /// A tap on a link.
    Click(Box<Click>),
    /// A first open.
    Configure(Box<Configure>),
    /// Events of one device.
    Events(Box<(Arrival, Vec<SdkEvent>)>),
    /// A website event.
    Web(Box<Posted>),
}

impl Step {
    /// Hands it to a store.
    pub async fn take(self, store: &dyn Store) -> StoreResult<()> {
        match self {
            Self::Click(click) => store.record_click(*click).await,
            Self::Configure(command) => store.configure(*command).await.map(drop),
            Self::Events(sent) => {
                let (arrival, events) = *sent;
                store.accept_sdk_events(arrival, events).await.map(drop)
            }
            Self::Web(posted) => store.accept_web_event(*posted).await.map(drop),
        }
    }

    /// How many events it is.
    pub fn events(&self) -> u64 {
        match self {
            Self::Click(_) => 0,
            Self::Configure(_) | Self::Web(_) => 1,
            Self::Events(sent) => sent.1.len() as u64,
        }
    }
}

impl Month {
    /// The steps of a day in stages: those of one stage may be taken at the same time, the next ones after them.
    pub fn day(&self, day: u32) -> [Vec<Step>; 3] {
        let (mut clicks, mut opens, mut events) = (Vec::new(), Vec::new(), Vec::new());
        for device in 0..self.installs_before(day + 1) {
            let born = self.born(device);
            let back = BACK.get((day - born) as usize);
            let back = back.unwrap_or(&BACK[BACK.len() - 1]);
            let mut today = self.random(device, 1_000 + u64::from(day));
            let is_back = today.random_range(0..1_000) < *back;
            if !is_back && born != day {
                continue;
            }
            let mut random = self.random(device, 1);
            let one = Device::draw(self, device, &mut random);
            if born == day {
                clicks.extend(one.clicks(self, &mut random));
                opens.push(Step::Configure(Box::new(one.open(self))));
            }
            if is_back {
                events.extend(one.active(self, day, &mut today));
            }
        }
        self.shop(day, &mut clicks, &mut events);
        [clicks, opens, events]
    }

    /// Hands all of it to a store, one step after the other.
    pub async fn take(&self, store: &Arc<dyn Store>) -> StoreResult<()> {
        for day in 0..self.days {
            for step in self.day(day).into_iter().flatten() {
                step.take(&**store).await?;
            }
        }
        Ok(())
    }

    fn random(&self, of: u64, what: u64) -> ChaCha8Rng {
        let mixed = self.seed
            ^ of.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ what.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ChaCha8Rng::seed_from_u64(mixed)
    }

    fn devices(&self) -> u64 {
        (self.events / EVENTS_PER_DEVICE).max(1)
    }

    /// Installs come evenly over the days.
    fn installs_before(&self, day: u32) -> u64 {
        self.devices() * u64::from(day.min(self.days)) / u64::from(self.days)
    }

    fn born(&self, device: u64) -> u32 {
        (0..self.days)
            .find(|day| device < self.installs_before(day + 1))
            .unwrap_or(self.days - 1)
    }

    /// A moment of a day, by its rhythm.
    fn moment(&self, day: u32, random: &mut ChaCha8Rng) -> Timestamp {
        let mut rest = random.random_range(0..RHYTHM.iter().sum::<u32>());
        let mut hour = 0;
        for weight in RHYTHM {
            if rest < weight {
                break;
            }
            rest -= weight;
            hour += 1;
        }
        let within = random.random_range(0..HOUR_MILLIS);
        let begin = self.begin.as_millis() + i64::from(day) * DAY_MILLIS;
        Timestamp::from_millis(begin + hour * HOUR_MILLIS + within)
    }

    /// What is paid on the website, renewed a week later, and given back in part in between.
    fn shop(&self, day: u32, clicks: &mut Vec<Step>, events: &mut Vec<Step>) {
        let buyers = self.events / 2_000 / u64::from(self.days) + 1;
        for (ago, kind) in [
            (0, WebEventKind::Purchase),
            (3, WebEventKind::Refund),
            (7, WebEventKind::Renewal),
        ] {
            let Some(bought) = day.checked_sub(ago) else {
                continue;
            };
            for buyer in 0..buyers {
                let number = u64::from(bought) * buyers + buyer;
                if kind == WebEventKind::Refund && number % 3 != 0 {
                    continue;
                }
                let mut random = self.random(number, 2);
                let click = self.click(self.funnel, bought, &mut random);
                let posted = self.posted(&click, number, kind, day, &mut random);
                if kind == WebEventKind::Purchase {
                    clicks.push(Step::Click(Box::new(click)));
                }
                events.push(Step::Web(Box::new(posted)));
            }
        }
    }

    fn posted(
        &self,
        click: &Click,
        number: u64,
        kind: WebEventKind,
        day: u32,
        random: &mut ChaCha8Rng,
    ) -> Posted {
        let url = HttpsUrl::parse_clean(&format!("{SHOP}/paid")).expect("an address");
        let (price, currency) = PRICES[(number % 5) as usize];
        let price = Amount::parse(price).expect("an amount");
        let (given_id, amount) = match kind {
            WebEventKind::Refund => (
                format!("refund-{number}"),
                Amount::from_micros(-price.micros() / 2),
            ),
            WebEventKind::Renewal => (format!("renewal-{number}"), price),
            _ => (format!("bought-{number}"), price),
        };
        let at = self.moment(day, random).max(click.clicked_at);
        Posted {
            app: self.app,
            id: EventId::new(at, random.random()),
            given_id,
            click_text: click.id.to_string(),
            click: Some(click.id),
            device: device_key("visitor", number),
            occurred_at: at,
            kind,
            amount: Some(amount),
            currency: Currency::stored(currency),
            origin: url.origin(),
            source_url: url.as_str().to_owned(),
            parent: (kind != WebEventKind::Purchase).then(|| format!("bought-{number}")),
            email_sha256: None,
            received_at: at,
        }
    }

    fn click(&self, link: LinkId, day: u32, random: &mut ChaCha8Rng) -> Click {
        let at = self.moment(day, random);
        let network = Network::ALL[random.random_range(0..Network::ALL.len())];
        let ad = random.random_range(0..24_u32);
        let mut captured = Captured::default();
        captured.campaign = Campaign {
            id: Some(format!("c{}", ad / 6)),
            name: Some(format!("Campaign {}", ad / 6)),
            adset_id: Some(format!("s{}", ad / 3)),
            ad_id: Some(format!("a{ad}")),
            ..Campaign::default()
        };
        let country = COUNTRIES[random.random_range(0..COUNTRIES.len())];
        Click {
            id: ClickId::new(at, random.random()),
            app: self.app,
            link,
            clicked_at: at,
            network: Some(network),
            network_by: None,
            bot: None,
            agent: Agent {
                platform: if random.random_range(0..2) == 0 {
                    Platform::Ios
                } else {
                    Platform::Android
                },
                os_version: None,
                model: None,
            },
            language: Some("en".to_owned()),
            timezone: None,
            screen: None,
            address: Some(IpAddr::from([203, 0, 113, 9])),
            address_hash: None,
            advertising_hash: None,
            country: Some(country.to_owned()),
            user_agent: None,
            referer: None,
            destination_origin: Some(SHOP.to_owned()),
            captured,
        }
    }
}

fn device_key(kind: &str, number: u64) -> DeviceKey {
    // Spread like the ids that devices make up.
    let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    DeviceKey::parse(&format!("{kind}-{spread:016x}")).expect("a device id")
}

/// A device of the month.
struct Device {
    key: DeviceKey,
    number: u64,
    platform: Platform,
    country: &'static str,
    installed_at: Timestamp,
    click: Option<Click>,
}

impl Device {
    fn draw(month: &Month, number: u64, random: &mut ChaCha8Rng) -> Self {
        let day = month.born(number);
        let link = month.links[random.random_range(0..month.links.len())];
        let click = month.click(link, day, random);
        let later = random.random_range(60_000..HOUR_MILLIS);
        let installed_at = Timestamp::from_millis(click.clicked_at.as_millis() + later);
        Self {
            key: device_key("device", number),
            number,
            platform: click.agent.platform,
            country: COUNTRIES[random.random_range(0..COUNTRIES.len())],
            installed_at,
            // A third come by themselves.
            click: (random.random_range(0..3) > 0).then_some(click),
        }
    }

    /// The click that leads here, others that lead nowhere, and a bot's.
    fn clicks(&self, month: &Month, random: &mut ChaCha8Rng) -> Vec<Step> {
        let mut clicks: Vec<Click> = self.click.iter().cloned().collect();
        let day = month.born(self.number);
        for _ in 0..random.random_range(0..3) {
            let link = month.links[random.random_range(0..month.links.len())];
            let mut click = month.click(link, day, random);
            click.bot = (random.random_range(0..5) == 0).then_some(BotReason::KnownAgent);
            clicks.push(click);
        }
        clicks
            .into_iter()
            .map(|click| Step::Click(Box::new(click)))
            .collect()
    }

    fn open(&self, month: &Month) -> Configure {
        let mut random = month.random(self.number, 3);
        let claims = self.click.iter().map(|click| Claim {
            click: ClaimedClick::Authentic(click.id),
            delivery: Delivery::Client,
        });
        let at = self.installed_at;
        let user = UserKey::parse(&format!("user-{}", self.number)).expect("a user id");
        Configure {
            app: month.app,
            environment: month.environment,
            policy: MoneyPolicy::Count,
            rules: month.rules.clone(),
            at,
            device: self.key.clone(),
            traits: Traits {
                platform: self.platform,
                os_version: Some("18.2".to_owned()),
                model: None,
                manufacturer: None,
                app_version: Some("1.2".to_owned()),
                bundle_id: None,
                locale: Some("en_US".to_owned()),
                timezone: None,
                screen: None,
                sdk_version: None,
            },
            identity: Identity {
                user: Some(user),
                ..Identity::default()
            },
            advertising_id: None,
            idfv: None,
            consent: Consent::default(),
            country: Some(self.country.to_owned()),
            claims: claims.collect(),
            referrer: None,
            times: ReferrerTimes::default(),
            ad_services_token: None,
            address_class: AddressClass::Other,
            address_hash: None,
            address_hashes: Vec::new(),
            advertising_hash: None,
            opened: None,
            attribution_id: AttributionId::new(at, random.random()),
            install_id: EventId::new(at, random.random()),
        }
    }

    /// What it does on a day: one or two sessions.
    fn active(&self, month: &Month, day: u32, random: &mut ChaCha8Rng) -> Vec<Step> {
        let sessions = random.random_range(1..=2);
        (0..sessions)
            .map(|session| {
                let begin = month.moment(day, random).max(self.installed_at);
                let count = random.random_range(1..=7);
                let events = (0..count).map(|place| {
                    let at = Timestamp::from_millis(begin.as_millis() + place * 1_000);
                    let given_id = format!("{}-{day}-{session}-{place}", self.number);
                    self.event(at, given_id, random)
                });
                let events: Vec<SdkEvent> = events.collect();
                let arrival = Arrival {
                    app: month.app,
                    environment: month.environment,
                    device: self.key.clone(),
                    received_at: Timestamp::from_millis(begin.as_millis() + 10_000),
                    country: None,
                    policy: MoneyPolicy::Count,
                    holds_suspicious: false,
                };
                Step::Events(Box::new((arrival, events)))
            })
            .collect()
    }

    fn event(&self, at: Timestamp, given_id: String, random: &mut ChaCha8Rng) -> SdkEvent {
        let name = match random.random_range(0..100_u32) {
            0..=2 => "sign_up".to_owned(),
            3..=4 => "start_trial".to_owned(),
            5 => "qualified_trial".to_owned(),
            6 => "subscribe".to_owned(),
            7..=8 => "purchase".to_owned(),
            9..=14 => format!("quest_{}", random.random_range(0..40)),
            _ => NAMES[random.random_range(0..NAMES.len())].to_owned(),
        };
        let (price, currency) = PRICES[random.random_range(0..PRICES.len())];
        let pays = ["purchase", "subscribe", "start_trial"].contains(&name.as_str());
        SdkEvent {
            id: EventId::new(at, random.random()),
            given_id,
            name,
            occurred_at: at,
            revenue: pays.then(|| Amount::parse(price).expect("an amount")),
            currency: pays.then(|| Currency::stored(currency)).flatten(),
            params: None,
        }
    }
}
