//! Figures counted from the log itself, for questions that no roll-up answers.

use super::{Dimension, Figures, Period, ReportQuery, StatsRow};
use crate::click::Click;
use crate::event::Event;
use crate::vocabulary::time::Timestamp;
use std::collections::BTreeMap;

/// Clicks and events of one question, at most. More would keep somebody waiting for seconds; whoever asks is told
/// to ask for fewer days.
pub const TALLY_ROWS_MAX: i64 = 500_000;

/// What was counted so far.
#[derive(Debug)]
pub struct EventLogTally<'a> {
    question: &'a ReportQuery,
    rows: BTreeMap<(usize, Vec<String>), Figures>,
}

impl<'a> EventLogTally<'a> {
    /// Nothing yet.
    pub const fn new(question: &'a ReportQuery) -> Self {
        Self {
            question,
            rows: BTreeMap::new(),
        }
    }

    /// Counts an event.
    pub fn add_event(&mut self, event: &Event) {
        let figures = Figures::of_event(event);
        self.add(event.occurred_at, &figures, |dimension| {
            of_event(event, dimension)
        });
    }

    /// Counts a click, unless it was no person's.
    pub fn add_click(&mut self, click: &Click) {
        let figures = Figures {
            clicks: 1,
            ..Figures::default()
        };
        // As in the roll-ups: a click is no event, so none has a name or a source.
        let of_events = [Dimension::Event, Dimension::Source];
        let asked = self.question.dimensions();
        let counts = !of_events.iter().any(|one| asked.contains(one));
        if counts && click.bot.is_none() {
            self.add(click.clicked_at, &figures, |dimension| {
                of_click(click, dimension)
            });
        }
    }

    fn add(&mut self, at: Timestamp, figures: &Figures, value: impl Fn(Dimension) -> String) {
        let Some(period) = period_of(&self.question.periods, at) else {
            return;
        };
        let filters = &self.question.filters;
        if filters
            .iter()
            .any(|(dimension, wanted)| value(*dimension) != *wanted)
        {
            return;
        }
        let values = self.question.group_by.iter().copied().map(value).collect();
        let row = self.rows.entry((period, values)).or_default();
        row.add(figures, 1);
    }

    /// The rows, by period and values.
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

/// Periods come one after the other.
fn period_of(periods: &[Period], at: Timestamp) -> Option<usize> {
    let after = periods.partition_point(|(from, _)| *from <= at);
    let number = after.checked_sub(1)?;
    (at < periods.get(number)?.1).then_some(number)
}

fn of_event(event: &Event, dimension: Dimension) -> String {
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

fn of_click(click: &Click, dimension: Dimension) -> String {
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
