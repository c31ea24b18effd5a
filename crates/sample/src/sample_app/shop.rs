//! The website: payments, renewals a week later, and partial refunds in between.

use super::{AdLink, SHOP, SampleAction, SampleApp};
use crate::sample_app::device::{device_key, price};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use tributary_domain::click::Click;
use tributary_domain::event::web::{WebEvent, WebEventKind};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::id::EventId;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::web_url::PageUrl;

/// One web buyer per this many events.
const EVENTS_PER_BUYER: u64 = 400;
/// Visitors of the website for each one who buys.
const VISITORS_PER_BUYER: u64 = 14;
/// A hundredth of a currency unit, in millionths. Refunds have no smaller parts.
const CENT_MICROS: i64 = 10_000;

impl SampleApp {
    /// Adds a day's website clicks and events.
    pub(super) fn add_shop_day(
        &self,
        day: u32,
        clicks: &mut Vec<SampleAction>,
        events: &mut Vec<SampleAction>,
    ) {
        let buyers = self.events / EVENTS_PER_BUYER / u64::from(self.days) + 1;
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
                if kind == WebEventKind::Refund && !number.is_multiple_of(3) {
                    continue;
                }
                let mut random = self.random(number, 2);
                let clicked_at = self.moment(bought, &mut random);
                let funnel = AdLink {
                    link: self.funnel,
                    network: None,
                };
                let click = self.click(funnel, clicked_at, &mut random);
                let event = self.web_event(&click, number, kind, day, &mut random);
                if kind == WebEventKind::Purchase {
                    clicks.push(SampleAction::Click(Box::new(click)));
                    for _ in 1..VISITORS_PER_BUYER {
                        let clicked_at = self.moment(bought, &mut random);
                        let click = self.click(funnel, clicked_at, &mut random);
                        clicks.push(SampleAction::Click(Box::new(click)));
                    }
                }
                events.push(SampleAction::Web(Box::new(event)));
            }
        }
    }

    fn web_event(
        &self,
        click: &Click,
        number: u64,
        kind: WebEventKind,
        day: u32,
        random: &mut ChaCha8Rng,
    ) -> WebEvent {
        let url = PageUrl::parse_without_query(&format!("{SHOP}/paid")).expect("an address");
        // The price stays the same for renewals and refunds.
        let country = click.country.as_deref().unwrap_or_default();
        let (price, currency) = price(country, &mut self.random(number, 7));
        let price = Amount::parse(price).expect("an amount");
        let (external_id, amount) = match kind {
            WebEventKind::Refund => (
                format!("refund-{number}"),
                Amount::from_micros(-(price.micros() / 2 / CENT_MICROS * CENT_MICROS)),
            ),
            WebEventKind::Renewal => (format!("renewal-{number}"), price),
            _ => (format!("bought-{number}"), price),
        };
        let at = self.moment(day, random).max(click.clicked_at);
        WebEvent {
            app: self.app,
            id: EventId::new(at, random.random()),
            external_id,
            click_text: click.id.to_string(),
            click: Some(click.id),
            device: device_key("visitor", number),
            occurred_at: at,
            kind,
            amount: Some(amount),
            currency: Currency::from_stored(currency),
            origin: url.origin(),
            source_url: url.as_str().to_owned(),
            parent: (kind != WebEventKind::Purchase).then(|| format!("bought-{number}")),
            email_sha256: None,
            received_at: at,
        }
    }
}
