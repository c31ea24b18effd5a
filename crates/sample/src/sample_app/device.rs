//! A device of the month: how it came to the app, and what it does there.

use super::{COUNTRIES, HOUR_MILLIS, SampleAction, SampleApp};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use tributary_domain::app::FraudPolicy;
use tributary_domain::attribution::evidence::{ClickIdSource, ReferrerTimes};
use tributary_domain::attribution::referrer::Referrer;
use tributary_domain::click::address::AddressClass;
use tributary_domain::click::{BotReason, Click};
use tributary_domain::device::{Consent, DeviceKey, Identity, Platform, Traits, UserKey};
use tributary_domain::event::sdk::{SdkEvent, SdkRequestContext};
use tributary_domain::install::{ClaimedClick, ClickClaim, ConfigureCommand};
use tributary_domain::ledger::MoneyPolicy;
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AttributionId, EventId};
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::time::Timestamp;

/// What people pay. The last one is above what is counted.
pub(super) const PRICES: [(&str, &str); 8] = [
    ("1.99", "USD"),
    ("4.99", "USD"),
    ("9.99", "USD"),
    ("49.99", "USD"),
    ("8.99", "EUR"),
    ("7.49", "GBP"),
    ("650", "JPY"),
    ("2500", "USD"),
];
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
const IPHONES: [&str; 3] = ["iPhone17,1", "iPhone16,2", "iPhone15,4"];
const ANDROIDS: [&str; 3] = ["Pixel 9", "SM-S921B", "2312DRA50G"];
/// No phone, and every phone farm.
const EMULATOR: &str = "sdk_gphone64_x86_64";
/// From a click to the first open, in milliseconds.
const OPENED_AFTER: std::ops::Range<i64> = 60_000..HOUR_MILLIS;
/// Sooner than anybody installs an app.
const HASTY_MILLIS: i64 = 3_000;

/// What brought a device to the app, and how that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Nothing did.
    Itself,
    /// A click, whose id the app delivers.
    Client,
    /// A click, whose id the Play Store delivers, with its times.
    Referrer,
    /// A click from the same address on the same kind of device.
    Likeness,
    /// An ad that only Apple knows of.
    Apple,
    /// A click that is seconds old.
    Hasty,
    /// A click that the store's times contradict.
    Contradicted,
    /// A click, on a device that cannot be one.
    Emulated,
    /// A click id that nobody gave out.
    Forged,
}

impl Way {
    fn draw(platform: Platform, random: &mut ChaCha8Rng) -> Self {
        let android = platform == Platform::Android;
        match random.random_range(0..100_u32) {
            0..=29 => Self::Itself,
            30..=39 if !android => Self::Apple,
            40..=49 => Self::Likeness,
            50..=51 => Self::Hasty,
            52 if android => Self::Contradicted,
            53 => Self::Emulated,
            54 => Self::Forged,
            _ if android => Self::Referrer,
            _ => Self::Client,
        }
    }
}

pub(super) fn device_key(kind: &str, number: u64) -> DeviceKey {
    // Spread like the ids that devices make up.
    let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    DeviceKey::parse(&format!("{kind}-{spread:016x}")).expect("a device id")
}

/// A device of the month.
pub(crate) struct SampleDevice {
    key: DeviceKey,
    number: u64,
    platform: Platform,
    model: &'static str,
    country: &'static str,
    way: Way,
    installed_at: Timestamp,
    click: Click,
}

impl SampleDevice {
    /// The device of this number, which begins with a click at a moment.
    pub(crate) fn draw(
        month: &SampleApp,
        number: u64,
        clicked_at: Timestamp,
        random: &mut ChaCha8Rng,
    ) -> Self {
        let later = random.random_range(OPENED_AFTER);
        Self::draw_with_delay(month, number, clicked_at, later, random)
    }

    /// As [`Self::draw`], opened so many milliseconds after the click.
    pub(crate) fn draw_with_delay(
        month: &SampleApp,
        number: u64,
        clicked_at: Timestamp,
        later: i64,
        random: &mut ChaCha8Rng,
    ) -> Self {
        let mut click = month.ad_click(clicked_at, random);
        let platform = click.agent.platform;
        let way = Way::draw(platform, random);
        let models = match platform {
            Platform::Ios => IPHONES,
            Platform::Android | Platform::Web => ANDROIDS,
        };
        let model = models[random.random_range(0..models.len())];
        click.agent.os_version = Some(os_version(platform).to_owned());
        if way == Way::Likeness {
            click.address_hash = Some(address_hash(number));
        }
        let later = if way == Way::Hasty {
            HASTY_MILLIS
        } else {
            later
        };
        Self {
            key: device_key("device", number),
            number,
            platform,
            model: if way == Way::Emulated {
                EMULATOR
            } else {
                model
            },
            country: COUNTRIES[random.random_range(0..COUNTRIES.len())],
            way,
            installed_at: Timestamp::from_millis(clicked_at.as_millis() + later),
            click,
        }
    }

    /// Whether only Apple knows what brought it.
    pub(crate) fn has_apple_token(&self) -> bool {
        self.way == Way::Apple
    }

    /// When it is first opened.
    pub(crate) fn installed_at(&self) -> Timestamp {
        self.installed_at
    }

    /// The click that leads here, others that lead nowhere, and a bot's.
    pub(crate) fn clicks(&self, month: &SampleApp, random: &mut ChaCha8Rng) -> Vec<SampleAction> {
        let mut clicks = Vec::new();
        if !matches!(self.way, Way::Itself | Way::Apple) {
            clicks.push(self.click.clone());
        }
        for _ in 0..random.random_range(0..5) {
            let before = random.random_range(0..HOUR_MILLIS);
            let at = Timestamp::from_millis(self.click.clicked_at.as_millis() - before);
            let mut click = month.ad_click(at.max(month.begin), random);
            click.bot = (random.random_range(0..5) == 0).then_some(BotReason::KnownAgent);
            clicks.push(click);
        }
        clicks
            .into_iter()
            .map(|click| SampleAction::Click(Box::new(click)))
            .collect()
    }

    /// Its first open.
    pub(crate) fn configure(&self, month: &SampleApp) -> ConfigureCommand {
        let mut random = month.random(self.number, 3);
        let at = self.installed_at;
        let user = UserKey::parse(&format!("user-{}", self.number)).expect("a user id");
        let address = (self.way == Way::Likeness).then(|| address_hash(self.number));
        let token = self
            .has_apple_token()
            .then(|| format!("token-{}", self.number));
        ConfigureCommand {
            app: month.app,
            environment: month.environment,
            policy: MoneyPolicy::Count,
            rules: month.rules.clone(),
            at,
            device: self.key.clone(),
            traits: self.traits(),
            identity: Identity {
                user: Some(user),
                ..Identity::default()
            },
            advertising_id: None,
            idfv: None,
            consent: consent(random.random_range(0..20)),
            country: Some(self.country.to_owned()),
            claims: self.claim().into_iter().collect(),
            referrer: self.referrer(),
            times: self.times(),
            ad_services_token: token,
            address_class: AddressClass::Other,
            address_hash: address,
            address_hashes: address.into_iter().collect(),
            advertising_hash: None,
            app_link_click: None,
            attribution_id: AttributionId::new(at, random.random()),
            install_id: EventId::new(at, random.random()),
        }
    }

    fn traits(&self) -> Traits {
        Traits {
            os_version: Some(os_version(self.platform).to_owned()),
            model: Some(self.model.to_owned()),
            app_version: Some("1.2".to_owned()),
            locale: Some("en_US".to_owned()),
            ..Traits::of(self.platform)
        }
    }

    fn claim(&self) -> Option<ClickClaim> {
        let genuine = ClaimedClick::Authentic(self.click.id);
        let (click, delivery) = match self.way {
            Way::Itself | Way::Likeness | Way::Apple => return None,
            Way::Client | Way::Hasty | Way::Emulated => (genuine, ClickIdSource::Client),
            Way::Referrer | Way::Contradicted => (genuine, ClickIdSource::Referrer),
            Way::Forged => (ClaimedClick::BadToken, ClickIdSource::Client),
        };
        Some(ClickClaim {
            click,
            source: delivery,
        })
    }

    fn referrer(&self) -> Option<Referrer> {
        let android = self.platform == Platform::Android;
        let text = self.click.id.to_string();
        match self.way {
            Way::Referrer | Way::Contradicted => Some(Referrer::Ours(text)),
            _ => android.then_some(Referrer::Organic),
        }
    }

    /// The store's times. They contradict a click that was made after them.
    fn times(&self) -> ReferrerTimes {
        let after = |millis| {
            let at = self.click.clicked_at.as_millis() + millis;
            Some(Timestamp::from_millis(at))
        };
        let (tap, begin) = match self.way {
            Way::Referrer => (after(5_000), after(20_000)),
            Way::Contradicted => (after(-HOUR_MILLIS), after(-HOUR_MILLIS / 2)),
            _ => return ReferrerTimes::default(),
        };
        ReferrerTimes {
            click_at: tap,
            install_begin_at: begin,
            click_at_server: tap,
            install_begin_at_server: begin,
        }
    }

    /// What it does on a day: one or two sessions.
    pub(crate) fn sessions_on(
        &self,
        month: &SampleApp,
        day: u32,
        random: &mut ChaCha8Rng,
    ) -> Vec<SampleAction> {
        let sessions = random.random_range(1..=2);
        (0..sessions)
            .map(|session| {
                let begin = month.moment(day, random).max(self.installed_at);
                let count = random.random_range(1..=7);
                let names: Vec<String> = (0..count).map(|_| event_name(random)).collect();
                self.session(month, begin, &format!("{day}-{session}"), names, random)
            })
            .collect()
    }

    /// Events of these names, a second apart.
    pub(crate) fn session(
        &self,
        month: &SampleApp,
        begin: Timestamp,
        label: &str,
        names: Vec<String>,
        random: &mut ChaCha8Rng,
    ) -> SampleAction {
        let events = (0_i64..).zip(names).map(|(place, name)| {
            let at = Timestamp::from_millis(begin.as_millis() + place * 1_000);
            let given_id = format!("{}-{label}-{place}", self.number);
            event(at, given_id, name, random)
        });
        let events: Vec<SdkEvent> = events.collect();
        let arrival = SdkRequestContext {
            app: month.app,
            environment: month.environment,
            device: self.key.clone(),
            received_at: Timestamp::from_millis(begin.as_millis() + 10_000),
            country: None,
            policy: MoneyPolicy::Count,
            revenue_events: Vec::new(),
            holds_suspicious: month.rules.fraud == FraudPolicy::Hold,
        };
        SampleAction::Events(Box::new((arrival, events)))
    }
}

const fn os_version(platform: Platform) -> &'static str {
    match platform {
        Platform::Ios => "18.2",
        Platform::Android | Platform::Web => "15",
    }
}

/// Nobody else has the address.
fn address_hash(number: u64) -> Digest {
    Digest::of(format!("address-{number}").as_bytes())
}

/// Of twenty, one refuses and two were not asked.
fn consent(of_twenty: u32) -> Consent {
    let said = match of_twenty {
        0 => Some(false),
        1 | 2 => None,
        _ => Some(true),
    };
    Consent {
        ad_user_data: said,
        ad_personalization: said,
        tracking: None,
    }
}

fn event_name(random: &mut ChaCha8Rng) -> String {
    match random.random_range(0..100_u32) {
        0..=2 => "sign_up".to_owned(),
        3..=4 => "start_trial".to_owned(),
        5 => "qualified_trial".to_owned(),
        6 => "subscribe".to_owned(),
        7..=8 => "purchase".to_owned(),
        9..=14 => format!("quest_{}", random.random_range(0..40)),
        _ => NAMES[random.random_range(0..NAMES.len())].to_owned(),
    }
}

fn event(at: Timestamp, given_id: String, name: String, random: &mut ChaCha8Rng) -> SdkEvent {
    let (price, currency) = PRICES[random.random_range(0..PRICES.len())];
    let pays = ["purchase", "subscribe", "start_trial"].contains(&name.as_str());
    SdkEvent {
        id: EventId::new(at, random.random()),
        external_id: given_id,
        name,
        occurred_at: at,
        revenue: pays.then(|| Amount::parse(price).expect("an amount")),
        currency: pays.then(|| Currency::from_stored(currency)).flatten(),
        params: None,
    }
}
