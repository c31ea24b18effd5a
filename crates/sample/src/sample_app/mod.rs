//! A generated app history: daily and weekly rhythm, growth, campaigns, bots, installs of every
//! kind, trials, payments in several currencies, renewals and refunds. The same seed and size give
//! the same history, one day at a time.

mod action;
mod device;
mod shop;

pub use action::{SampleAction, apply_all};
pub(crate) use device::SampleDevice;

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::net::IpAddr;
use std::sync::Arc;
use tributary_domain::access::Environment;
use tributary_domain::app::AttributionRules;
use tributary_domain::click::agent::Agent;
use tributary_domain::click::params::{NetworkClickIds, TrackingParams};
use tributary_domain::click::{Click, NetworkSource};
use tributary_domain::device::Platform;
use tributary_domain::integration::Network;
use tributary_domain::link::Campaign;
use tributary_domain::vocabulary::id::{AppId, ClickId, LinkId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{Store, StoreResult};

const HOUR_MILLIS: i64 = 60 * 60 * 1_000;
pub(crate) const DAY_MILLIS: i64 = 24 * HOUR_MILLIS;
/// Most days that the history and the live stream can have.
const DAYS_MAX: u32 = 100_000;
/// Relative activity per hour of the day.
const HOUR_WEIGHTS: [u32; 24] = [
    2, 1, 1, 1, 1, 2, 3, 5, 6, 6, 6, 7, 8, 7, 6, 6, 7, 8, 9, 10, 10, 9, 6, 4,
];
/// Relative installs per day of the week.
const WEEKDAY_WEIGHTS: [u64; 7] = [90, 85, 95, 100, 120, 150, 140];
/// Daily growth of installs, in the unit of [`WEEKDAY_WEIGHTS`].
const GROWTH: u64 = 2;
/// Number of devices per thousand that return, by day since install. The last entry applies to all
/// later days.
const RETURN_PER_MILLE: [u32; 14] = [
    1_000, 400, 300, 250, 200, 200, 200, 140, 140, 140, 140, 140, 140, 90,
];
/// Approximate number of events per device.
const EVENTS_PER_DEVICE: u64 = 22;
const COUNTRIES: [&str; 10] = ["US", "US", "DE", "GB", "FR", "BR", "IN", "JP", "ES", "NL"];
/// Campaigns, each with its own ad sets and ads.
const CAMPAIGNS: [&str; 4] = [
    "Launch",
    "Lookalike audience",
    "Seasonal offer",
    "Brand search",
];
/// Names of a campaign's ad sets, and of an ad set's ads.
const ADSETS: [&str; 2] = ["Wide audience", "Recent visitors"];
const ADS: [&str; 3] = ["Video, 15 seconds", "Carousel", "Still picture"];
/// Ads per campaign; three of them form an ad set.
const ADS_PER_CAMPAIGN: usize = 6;
/// Origin of the website with web payments.
pub(crate) const SHOP: &str = "https://shop.example.com";
const IPHONE: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_2 like Mac OS X) AppleWebKit/605.1.15 \
     (KHTML, like Gecko) Version/18.2 Mobile/15E148 Safari/604.1";
const ANDROID: &str = "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) \
     Chrome/141.0.0.0 Mobile Safari/537.36";

/// A link used in ads.
#[derive(Debug, Clone, Copy)]
pub struct AdLink {
    /// The link.
    pub link: LinkId,
    /// Network of the ads; `None` for all networks.
    pub network: Option<Network>,
}

/// An app with a generated history.
#[derive(Debug, Clone)]
pub struct SampleApp {
    /// The app.
    pub app: AppId,
    /// Attribution rules of the app.
    pub rules: AttributionRules,
    /// Links to the app.
    pub links: Vec<AdLink>,
    /// Link to the website `https://shop.example.com`.
    pub funnel: LinkId,
    /// Live or test environment.
    pub environment: Environment,
    /// Start of the first day.
    pub begin: Timestamp,
    /// Number of days.
    pub days: u32,
    /// Approximate number of events.
    pub events: u64,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl SampleApp {
    /// Returns a day's actions in stages. Days after the last one continue the history. Actions in one stage may run concurrently; the next stage
    /// runs after them.
    pub fn day(&self, day: u32) -> [Vec<SampleAction>; 4] {
        let (mut clicks, mut opens, mut events) = (Vec::new(), Vec::new(), Vec::new());
        let mut has_apple_ads = false;
        for number in 0..self.installs_before(day + 1) {
            let install_day = self.install_day(number);
            let return_rate = RETURN_PER_MILLE.get((day - install_day) as usize);
            let return_rate = return_rate.unwrap_or(&RETURN_PER_MILLE[RETURN_PER_MILLE.len() - 1]);
            let mut today = self.random(number, 1_000 + u64::from(day));
            let returns = today.random_range(0..1_000) < *return_rate;
            if !returns && install_day != day {
                continue;
            }
            let mut random = self.random(number, 1);
            let clicked_at = self.moment(install_day, &mut random);
            let one = SampleDevice::draw(self, number, clicked_at, &mut random);
            if install_day == day {
                clicks.extend(one.clicks(self, &mut random));
                has_apple_ads |= one.has_apple_token();
                opens.push(SampleAction::Configure(Box::new(one.configure(self))));
            }
            if returns {
                events.extend(one.sessions_on(self, day, &mut today));
            }
        }
        self.add_shop_day(day, &mut clicks, &mut events);
        // Sorted by time, as in production, so that neighbouring actions are counted in the same
        // roll-up buckets.
        for stage in [&mut clicks, &mut opens, &mut events] {
            stage.sort_by_key(SampleAction::at);
        }
        // An hour into the next day, when every device with a click on this day has opened the app.
        let answered_at = self.day_start(day + 1).as_millis() + HOUR_MILLIS;
        let answers =
            has_apple_ads.then(|| SampleAction::Apple(Timestamp::from_millis(answered_at)));
        [clicks, opens, answers.into_iter().collect(), events]
    }

    /// Applies the whole history to a store, one action after the other.
    pub async fn apply(&self, store: &Arc<dyn Store>) -> StoreResult<()> {
        for day in 0..self.days {
            for action in self.day(day).into_iter().flatten() {
                action.apply(&**store).await?;
            }
        }
        Ok(())
    }

    pub(crate) fn random(&self, of: u64, what: u64) -> ChaCha8Rng {
        let mixed = self.seed
            ^ of.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ what.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ChaCha8Rng::seed_from_u64(mixed)
    }

    /// Returns the number of devices.
    pub(crate) fn devices(&self) -> u64 {
        (self.events / EVENTS_PER_DEVICE).max(1)
    }

    /// Returns the number of installs before a day. Installs vary by weekday and grow, also after the
    /// last day of the history.
    pub(crate) fn installs_before(&self, day: u32) -> u64 {
        let weight = |day: u32| {
            let (day, week) = (u64::from(day), WEEKDAY_WEIGHTS.len());
            let rest = usize::try_from(day).unwrap_or(0) % week;
            let whole = day / 7 * WEEKDAY_WEIGHTS.iter().sum::<u64>();
            whole
                + WEEKDAY_WEIGHTS[..rest].iter().sum::<u64>()
                + GROWTH * day * day.saturating_sub(1) / 2
        };
        self.devices() * weight(day) / weight(self.days)
    }

    /// Returns the day on which a device is installed.
    pub(crate) fn install_day(&self, device: u64) -> u32 {
        let is_installed = |day: &u32| device < self.installs_before(day + 1);
        (0..DAYS_MAX).find(is_installed).unwrap_or(DAYS_MAX)
    }

    /// Returns the number of installs on a day.
    pub(crate) fn installs_on(&self, day: u32) -> u64 {
        self.installs_before(day + 1) - self.installs_before(day)
    }

    /// Returns the number of the day that contains a time; 0 before the first day.
    pub(crate) fn day_of(&self, at: Timestamp) -> u32 {
        let days = (at.as_millis() - self.begin.as_millis()) / DAY_MILLIS;
        u32::try_from(days.max(0)).unwrap_or(u32::MAX)
    }

    /// Returns the expected number of installs in the hour that contains a time, in thousandths.
    /// History and live stream have the same weekdays, hours and growth.
    pub fn expected_installs(&self, at: Timestamp) -> u64 {
        let day = self.day_of(at);
        let within = at.as_millis() - self.day_start(day).as_millis();
        let hour = usize::try_from(within.max(0) / HOUR_MILLIS).unwrap_or(0);
        let weight = u64::from(HOUR_WEIGHTS[hour.min(HOUR_WEIGHTS.len() - 1)]);
        let all = u64::from(HOUR_WEIGHTS.iter().sum::<u32>());
        1_000 * self.installs_on(day) * weight / all
    }

    /// Draws a device of the history or of the live stream.
    pub(crate) fn device(&self, number: u64) -> SampleDevice {
        let mut random = self.random(number, 1);
        let clicked_at = self.moment(self.install_day(number), &mut random);
        SampleDevice::draw(self, number, clicked_at, &mut random)
    }

    /// Returns the start of a day.
    pub(crate) fn day_start(&self, day: u32) -> Timestamp {
        Timestamp::from_millis(self.begin.as_millis() + i64::from(day) * DAY_MILLIS)
    }

    /// Draws a time on a day, weighted by hour.
    pub(crate) fn moment(&self, day: u32, random: &mut ChaCha8Rng) -> Timestamp {
        let mut rest = random.random_range(0..HOUR_WEIGHTS.iter().sum::<u32>());
        let mut hour = 0;
        for weight in HOUR_WEIGHTS {
            if rest < weight {
                break;
            }
            rest -= weight;
            hour += 1;
        }
        let within = random.random_range(0..HOUR_MILLIS);
        Timestamp::from_millis(self.day_start(day).as_millis() + hour * HOUR_MILLIS + within)
    }

    /// Draws a click on one of the links to the app.
    pub(crate) fn ad_click(&self, at: Timestamp, random: &mut ChaCha8Rng) -> Click {
        let ad = self.links[random.random_range(0..self.links.len())];
        self.click(ad, at, random)
    }

    fn click(&self, ad: AdLink, at: Timestamp, random: &mut ChaCha8Rng) -> Click {
        let network = ad
            .network
            .unwrap_or_else(|| Network::ALL[random.random_range(0..Network::ALL.len())]);
        let ad_index = random.random_range(0..CAMPAIGNS.len() * ADS_PER_CAMPAIGN);
        let country = COUNTRIES[random.random_range(0..COUNTRIES.len())];
        let platform = if random.random_range(0..2) == 0 {
            Platform::Ios
        } else {
            Platform::Android
        };
        let captured = TrackingParams {
            click_ids: click_ids(network, random.random()),
            campaign: campaign(ad_index),
            ..TrackingParams::default()
        };
        let address = [203, 0, 113, random.random_range(1..=254)];
        Click {
            id: ClickId::new(at, random.random()),
            app: self.app,
            link: ad.link,
            clicked_at: at,
            network: Some(network),
            network_by: Some(NetworkSource::ClickId),
            bot: None,
            agent: Agent {
                platform,
                os_version: None,
                model: None,
            },
            language: Some("en".to_owned()),
            timezone: None,
            screen: None,
            address: Some(IpAddr::from(address)),
            address_hash: None,
            advertising_hash: None,
            country: Some(country.to_owned()),
            user_agent: Some(user_agent(platform).to_owned()),
            referer: None,
            destination_origin: Some(SHOP.to_owned()),
            environment: None,
            captured,
        }
    }
}

const fn user_agent(platform: Platform) -> &'static str {
    match platform {
        Platform::Ios => IPHONE,
        Platform::Android | Platform::Web => ANDROID,
    }
}

/// Returns the click id that a network adds to the URL of an ad.
fn click_ids(network: Network, number: u128) -> NetworkClickIds {
    let mut ids = NetworkClickIds::default();
    let (slot, text) = match network {
        Network::A => (&mut ids.fbclid, format!("IwY2xjaw{number:032x}")),
        Network::B => (&mut ids.gclid, format!("CjwKCAjw{number:032x}")),
        Network::C => (&mut ids.ttclid, format!("E.C.P.{number:032x}")),
        Network::D => (&mut ids.oppref, format!("{number:032x}")),
    };
    *slot = Some(text);
    ids
}

fn campaign(ad_index: usize) -> Campaign {
    let number = ad_index / ADS_PER_CAMPAIGN;
    Campaign {
        id: Some(format!("c{number}")),
        name: Some(CAMPAIGNS[number].to_owned()),
        adset_id: Some(format!("s{}", ad_index / 3)),
        adset_name: Some(ADSETS[ad_index / 3 % ADSETS.len()].to_owned()),
        ad_id: Some(format!("a{ad_index}")),
        ad_name: Some(ADS[ad_index % ADS.len()].to_owned()),
    }
}

#[cfg(test)]
mod plausibility_tests;
#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use tributary_domain::attribution::evidence::ClickIdSource;

    pub(crate) fn app(seed: u64) -> SampleApp {
        let ad = |network| AdLink {
            link: LinkId::from_bytes([network as u8 + 1; 16]),
            network: Some(network),
        };
        SampleApp {
            app: AppId::from_bytes([1; 16]),
            rules: AttributionRules::default(),
            links: Network::ALL.map(ad).to_vec(),
            funnel: LinkId::from_bytes([9; 16]),
            environment: Environment::Live,
            begin: Timestamp::from_millis(20_000 * DAY_MILLIS),
            days: 60,
            events: 8_000,
            seed,
        }
    }

    #[test]
    fn the_seed_determines_the_history() {
        let text = |seed| format!("{:?}", app(seed).day(40));
        assert_eq!(text(1), text(1));
        assert_ne!(text(1), text(2));
    }

    #[test]
    fn installs_grow_and_add_up_to_the_number_of_devices() {
        let app = app(1);
        let on = |day| app.installs_before(day + 1) - app.installs_before(day);
        let week = |first: u32| (first..first + 7).map(on).sum::<u64>();
        assert!(week(50) > week(0), "{} and {}", week(0), week(50));
        assert_eq!((0..60).map(on).sum::<u64>(), app.devices());
    }

    #[test]
    fn installs_come_from_every_acquisition() {
        let app = app(1);
        let opens = (0..app.days).flat_map(|day| {
            let [_, opens, ..] = app.day(day);
            opens.into_iter().filter_map(|action| match action {
                SampleAction::Configure(open) => Some(*open),
                _ => None,
            })
        });
        let opens: Vec<_> = opens.collect();
        let by = |delivery| {
            move |open: &tributary_domain::install::ConfigureCommand| {
                open.claims.iter().any(|claim| claim.source == delivery)
            }
        };
        assert!(opens.iter().any(by(ClickIdSource::Client)));
        assert!(opens.iter().any(by(ClickIdSource::Referrer)));
        assert!(opens.iter().any(|open| open.ad_services_token.is_some()));
        assert!(opens.iter().any(|open| open.address_hash.is_some()));
        assert!(opens.iter().any(|open| open.claims.is_empty()));
    }
}
