//! Ad costs for a day, priced per click.

use crate::sample_app::{SampleAction, SampleApp};
use std::collections::BTreeMap;
use std::time::Duration;
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::integration::Network;
use tributary_domain::report::cost::{Cost, CostOrigin};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::money::Amount;

/// Cost per click at each network, in millionths of a US dollar.
const CLICK_MICROS: [i64; 4] = [1_150_000, 1_650_000, 740_000, 980_000];
/// Daily cost of each Apple Ads campaign, in millionths of a US dollar.
const APPLE_MICROS: i64 = 620_000;
/// Ids of the Apple Ads campaigns.
const APPLE_CAMPAIGNS: std::ops::Range<u32> = 542_370_540..542_370_543;

/// Time from the start of a day to noon.
const NOON: Duration = Duration::from_hours(12);

/// Returns the costs of a day's clicks and of Apple Ads.
pub(crate) fn of_day(app: &SampleApp, day: u32, actions: &[SampleAction]) -> Vec<Cost> {
    let mut clicks: BTreeMap<(Network, &str), i64> = BTreeMap::new();
    for action in actions {
        let SampleAction::Click(click) = action else {
            continue;
        };
        if let (Some(network), Some(campaign), None) =
            (click.network, &click.campaign().id, click.bot)
        {
            *clicks.entry((network, campaign)).or_default() += 1;
        }
    }
    // Noon is on the same date in UTC and in the time zones of the sample.
    let noon = app.day_start(day).plus(NOON);
    let day = Day::of(noon);
    let cost = |network, campaign: String, micros| Cost {
        day,
        network,
        campaign,
        amount: Amount::from_micros(micros),
        currency: Currency::USD,
        origin: CostOrigin::Manual,
    };
    let by_click = clicks.into_iter().map(|((network, campaign), count)| {
        let micros = CLICK_MICROS[network as usize] * count;
        cost(CreditedNetwork::Ad(network), campaign.to_owned(), micros)
    });
    let apple = APPLE_CAMPAIGNS.map(|campaign| {
        cost(
            CreditedNetwork::AppleAds,
            campaign.to_string(),
            APPLE_MICROS,
        )
    });
    by_click.chain(apple).collect()
}
