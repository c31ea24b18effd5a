//! Figures counted from the event log, for queries that no roll-up covers.

use super::{Dimension, Figures, Period, ReportQuery, StatsRow};
use crate::click::Click;
use crate::event::Event;
use crate::vocabulary::time::Timestamp;
use std::collections::BTreeMap;

/// Maximum number of clicks and events that one query counts. More would take seconds, so the query
/// is refused and the caller is asked to request fewer days.
pub const TALLY_ROWS_MAX: i64 = 500_000;

/// Figures counted so far.
#[derive(Debug)]
pub struct EventLogTally<'a> {
    query: &'a ReportQuery,
    rows: BTreeMap<(usize, Vec<String>), Figures>,
}

impl<'a> EventLogTally<'a> {
    /// Starts an empty tally.
    pub const fn new(query: &'a ReportQuery) -> Self {
        Self {
            query,
            rows: BTreeMap::new(),
        }
    }

    /// Counts an event.
    pub fn add_event(&mut self, event: &Event) {
        let figures = Figures::of_event(event);
        self.add(event.occurred_at, &figures, |dimension| {
            event_value(event, dimension)
        });
    }

    /// Counts a click, unless it came from a bot.
    pub fn add_click(&mut self, click: &Click) {
        let figures = Figures {
            clicks: 1,
            ..Figures::default()
        };
        // As in the roll-ups, clicks have no event name or source.
        let event_dimensions = [Dimension::Event, Dimension::Source];
        let dimensions = self.query.dimensions();
        let counts = !event_dimensions.iter().any(|one| dimensions.contains(one));
        if counts && click.bot.is_none() {
            self.add(click.clicked_at, &figures, |dimension| {
                click_value(click, dimension)
            });
        }
    }

    fn add(&mut self, at: Timestamp, figures: &Figures, value: impl Fn(Dimension) -> String) {
        let Some(period) = period_of(&self.query.periods, at) else {
            return;
        };
        let filters = &self.query.filters;
        if filters
            .iter()
            .any(|(dimension, wanted)| !dimension.passes(wanted, &value(*dimension)))
        {
            return;
        }
        let values = self.query.group_by.iter().copied().map(value).collect();
        let row = self.rows.entry((period, values)).or_default();
        row.add(figures, 1);
    }

    /// Returns the rows, sorted by period and values.
    pub fn into_rows(self) -> Vec<StatsRow> {
        let rows = self.rows.into_iter();
        rows.map(|((period, values), figures)| StatsRow {
            period,
            values,
            figures,
        })
        .collect()
    }
}

/// Returns the index of the period that contains `at`. Periods are in ascending order.
fn period_of(periods: &[Period], at: Timestamp) -> Option<usize> {
    let after = periods.partition_point(|(from, _)| *from <= at);
    let number = after.checked_sub(1)?;
    (at < periods.get(number)?.1).then_some(number)
}

fn event_value(event: &Event, dimension: Dimension) -> String {
    let credit = event.credit.as_ref();
    let campaign = |pick: fn(&crate::link::Campaign) -> &Option<String>| {
        credit.and_then(|credit| pick(&credit.campaign).clone())
    };
    let value = match dimension {
        Dimension::Network => credit.map(|credit| credit.network.as_str().to_owned()),
        Dimension::Link => credit
            .and_then(|credit| credit.link)
            .map(|link| link.to_string()),
        Dimension::Campaign => campaign(|campaign| &campaign.id),
        Dimension::Adset => campaign(|campaign| &campaign.adset_id),
        Dimension::Ad => campaign(|campaign| &campaign.ad_id),
        Dimension::Country => event.country.clone(),
        Dimension::Platform => event.platform.map(|platform| platform.as_str().to_owned()),
        Dimension::Event => Some(event.name.clone()),
        Dimension::Source => Some(event.source.as_str().to_owned()),
    };
    value.unwrap_or_default()
}

fn click_value(click: &Click, dimension: Dimension) -> String {
    let campaign = click.campaign();
    let network = click
        .network
        .map_or("other", crate::integration::Network::as_str);
    let value = match dimension {
        Dimension::Network => Some(network.to_owned()),
        Dimension::Link => Some(click.link.to_string()),
        Dimension::Campaign => campaign.id.clone(),
        Dimension::Adset => campaign.adset_id.clone(),
        Dimension::Ad => campaign.ad_id.clone(),
        Dimension::Country => click.country.clone(),
        Dimension::Platform => Some(click.platform().as_str().to_owned()),
        Dimension::Event | Dimension::Source => None,
    };
    value.unwrap_or_default()
}
