//! A month of an app, made up: a daily and a weekly rhythm, growth, campaigns, bots, installs of every kind, trials,
//! payments in several currencies, renewals and refunds. The same seed and size give the same month, of any size, a
//! day at a time.

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
/// How much happens in each hour of a day.
const RHYTHM: [u32; 24] = [
    2, 1, 1, 1, 1, 2, 3, 5, 6, 6, 6, 7, 8, 7, 6, 6, 7, 8, 9, 10, 10, 9, 6, 4,
];
/// How many installs come on each day of a week.
const WEEK: [u64; 7] = [90, 85, 95, 100, 120, 150, 140];
/// By how much more come each day, in the unit of [`WEEK`].
const GROWTH: u64 = 2;
/// Of a thousand devices, how many come back at an age in days; older ones as the last.
const BACK: [u32; 14] = [
    1_000, 400, 300, 250, 200, 200, 200, 140, 140, 140, 140, 140, 140, 90,
];
/// Events of a device in such a month, about.
const EVENTS_PER_DEVICE: u64 = 22;
const COUNTRIES: [&str; 10] = ["US", "US", "DE", "GB", "FR", "BR", "IN", "JP", "ES", "NL"];
/// Campaigns, each with ad sets and ads of its own.
const CAMPAIGNS: [&str; 4] = [
    "Launch",
    "Lookalike audience",
    "Seasonal offer",
    "Brand search",
];
/// Ads of a campaign; each three are an ad set.
const ADS_PER_CAMPAIGN: usize = 6;
/// Where the website is that some of them pay on.
pub(crate) const SHOP: &str = "https://shop.example.com";
const IPHONE: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_2 like Mac OS X) AppleWebKit/605.1.15 \
     (KHTML, like Gecko) Version/18.2 Mobile/15E148 Safari/604.1";
const ANDROID: &str = "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) \
     Chrome/141.0.0.0 Mobile Safari/537.36";

/// A link that ads lead to.
#[derive(Debug, Clone, Copy)]
pub struct AdLink {
    /// The link.
    pub link: LinkId,
    /// Whose ads; without one, those of all networks.
    pub network: Option<Network>,
}

/// What a month is made up for.
#[derive(Debug, Clone)]
pub struct SampleApp {
    /// Of which app.
    pub app: AppId,
    /// Its rules.
    pub rules: AttributionRules,
    /// Links that lead to the app.
    pub links: Vec<AdLink>,
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

impl SampleApp {
    /// The steps of a day in stages: those of one stage may be taken at the same time, the next ones after them.
    pub fn day(&self, day: u32) -> [Vec<SampleAction>; 4] {
        let (mut clicks, mut opens, mut events) = (Vec::new(), Vec::new(), Vec::new());
        let mut asks_apple = false;
        for number in 0..self.installs_before(day + 1) {
            let born = self.born(number);
            let back = BACK.get((day - born) as usize);
            let back = back.unwrap_or(&BACK[BACK.len() - 1]);
            let mut today = self.random(number, 1_000 + u64::from(day));
            let is_back = today.random_range(0..1_000) < *back;
            if !is_back && born != day {
                continue;
            }
            let mut random = self.random(number, 1);
            let clicked_at = self.moment(born, &mut random);
            let one = SampleDevice::draw(self, number, clicked_at, &mut random);
            if born == day {
                clicks.extend(one.clicks(self, &mut random));
                asks_apple |= one.has_apple_token();
                opens.push(SampleAction::Configure(Box::new(one.configure(self))));
            }
            if is_back {
                events.extend(one.sessions_on(self, day, &mut today));
            }
        }
        self.add_shop_day(day, &mut clicks, &mut events);
        // As they come in life: what comes together counts into the same stretches of time.
        for stage in [&mut clicks, &mut opens, &mut events] {
            stage.sort_by_key(SampleAction::at);
        }
        // An hour into the next day: whoever clicked at its end has opened the app by then.
        let answered_at = self.day_start(day + 1).as_millis() + HOUR_MILLIS;
        let answers = asks_apple.then(|| SampleAction::Apple(Timestamp::from_millis(answered_at)));
        [clicks, opens, answers.into_iter().collect(), events]
    }

    /// Hands all of it to a store, one step after the other.
    pub async fn apply(&self, store: &Arc<dyn Store>) -> StoreResult<()> {
        for day in 0..self.days {
            for step in self.day(day).into_iter().flatten() {
                step.apply(&**store).await?;
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

    /// How many install the app.
    pub(crate) fn devices(&self) -> u64 {
        (self.events / EVENTS_PER_DEVICE).max(1)
    }

    /// Installs follow the week, and grow.
    pub(crate) fn installs_before(&self, day: u32) -> u64 {
        let weight = |day: u32| {
            let (day, week) = (u64::from(day), WEEK.len());
            let rest = usize::try_from(day).unwrap_or(0) % week;
            let whole = day / 7 * WEEK.iter().sum::<u64>();
            whole + WEEK[..rest].iter().sum::<u64>() + GROWTH * day * day.saturating_sub(1) / 2
        };
        self.devices() * weight(day.min(self.days)) / weight(self.days)
    }

    fn born(&self, device: u64) -> u32 {
        (0..self.days)
            .find(|day| device < self.installs_before(day + 1))
            .unwrap_or(self.days - 1)
    }

    /// The first moment of a day.
    pub(crate) fn day_start(&self, day: u32) -> Timestamp {
        Timestamp::from_millis(self.begin.as_millis() + i64::from(day) * DAY_MILLIS)
    }

    /// A moment of a day, by its rhythm.
    pub(crate) fn moment(&self, day: u32, random: &mut ChaCha8Rng) -> Timestamp {
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
        Timestamp::from_millis(self.day_start(day).as_millis() + hour * HOUR_MILLIS + within)
    }

    /// A click on one of the links that lead to the app.
    pub(crate) fn ad_click(&self, at: Timestamp, random: &mut ChaCha8Rng) -> Click {
        let ad = self.links[random.random_range(0..self.links.len())];
        self.click(ad, at, random)
    }

    fn click(&self, ad: AdLink, at: Timestamp, random: &mut ChaCha8Rng) -> Click {
        let network = ad
            .network
            .unwrap_or_else(|| Network::ALL[random.random_range(0..Network::ALL.len())]);
        let place = random.random_range(0..CAMPAIGNS.len() * ADS_PER_CAMPAIGN);
        let country = COUNTRIES[random.random_range(0..COUNTRIES.len())];
        let platform = if random.random_range(0..2) == 0 {
            Platform::Ios
        } else {
            Platform::Android
        };
        let captured = TrackingParams {
            click_ids: click_ids(network, random.random()),
            campaign: campaign(place),
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

/// The click id that a network puts into the URL of its ads.
fn click_ids(network: Network, number: u128) -> NetworkClickIds {
    let mut ids = NetworkClickIds::default();
    let (place, text) = match network {
        Network::A => (&mut ids.fbclid, format!("IwY2xjaw{number:032x}")),
        Network::B => (&mut ids.gclid, format!("CjwKCAjw{number:032x}")),
        Network::C => (&mut ids.ttclid, format!("E.C.P.{number:032x}")),
        Network::D => (&mut ids.oppref, format!("{number:032x}")),
    };
    *place = Some(text);
    ids
}

fn campaign(place: usize) -> Campaign {
    let number = place / ADS_PER_CAMPAIGN;
    Campaign {
        id: Some(format!("c{number}")),
        name: Some(CAMPAIGNS[number].to_owned()),
        adset_id: Some(format!("s{}", place / 3)),
        ad_id: Some(format!("a{place}")),
        ..Campaign::default()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use tributary_domain::attribution::evidence::ClickIdSource;

    pub(crate) fn month(seed: u64) -> SampleApp {
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
    fn the_same_seed_gives_the_same_month_and_another_one_another() {
        let text = |seed| format!("{:?}", month(seed).day(40));
        assert_eq!(text(1), text(1));
        assert_ne!(text(1), text(2));
    }

    #[test]
    fn installs_grow_and_come_to_the_number_of_devices() {
        let month = month(1);
        let on = |day| month.installs_before(day + 1) - month.installs_before(day);
        let week = |first: u32| (first..first + 7).map(on).sum::<u64>();
        assert!(week(50) > week(0), "{} and {}", week(0), week(50));
        assert_eq!((0..60).map(on).sum::<u64>(), month.devices());
    }

    #[test]
    fn installs_come_in_every_way() {
        let month = month(1);
        let opens = (0..month.days).flat_map(|day| {
            let [_, opens, ..] = month.day(day);
            opens.into_iter().filter_map(|step| match step {
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
