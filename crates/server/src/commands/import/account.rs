//! The account of an import: what became of each line.

use super::lines::{LinePlace, RejectedLine};
use std::collections::BTreeMap;
use tributary_domain::event::Event;
use tributary_domain::event::import::{ImportOutcome, ImportRejection};
use tributary_domain::vocabulary::money::Amount;
use tributary_store::ImportMode;

/// Maximum number of rejected lines that are listed. The others are only counted.
pub(super) const REJECTIONS_SHOWN_MAX: usize = 100;

/// Counts and sums.
#[derive(Debug, Default)]
pub(super) struct ImportAccount {
    new: u64,
    stored: u64,
    rejected: u64,
    lost_links: u64,
    lost_clicks: u64,
    /// Counted revenue of new events in millionths, by currency.
    revenue: BTreeMap<String, i64>,
    /// The rejected lines that were found first.
    rejections: Vec<RejectedLine>,
}

impl ImportAccount {
    /// Returns the number of lines with an outcome.
    pub(super) const fn read(&self) -> u64 {
        self.new + self.stored + self.rejected
    }

    pub(super) const fn has_rejections(&self) -> bool {
        self.rejected > 0
    }

    /// Adds lines that cannot be read.
    pub(super) fn add_rejected(&mut self, lines: Vec<RejectedLine>) {
        for line in lines {
            self.rejected += 1;
            if self.rejections.len() < REJECTIONS_SHOWN_MAX {
                self.rejections.push(line);
            }
        }
    }

    /// Adds the outcome of an event.
    pub(super) fn add(&mut self, event: &Event, place: &LinePlace, outcome: ImportOutcome) {
        match outcome {
            ImportOutcome::New(loss) => {
                self.new += 1;
                self.lost_links += u64::from(loss.link);
                self.lost_clicks += u64::from(loss.click);
                self.add_revenue(event);
            }
            ImportOutcome::AlreadyStored => self.stored += 1,
            ImportOutcome::Rejected(rejection) => {
                let reason = match rejection {
                    ImportRejection::IdTaken => "id: Another event has this id.",
                    ImportRejection::DeviceInstalled => {
                        "deviceId: This device has an install already."
                    }
                };
                let place = place.clone();
                let reason = reason.to_owned();
                self.add_rejected(vec![RejectedLine { place, reason }]);
            }
        }
    }

    fn add_revenue(&mut self, event: &Event) {
        let revenue = event.revenue.as_ref();
        let counted = revenue.filter(|revenue| revenue.uncounted.is_none());
        if let Some(revenue) = counted
            && let Some(currency) = &revenue.currency
        {
            let sum = self.revenue.entry(currency.as_str().to_owned());
            let sum = sum.or_default();
            *sum = sum.saturating_add(revenue.amount.micros());
        }
    }

    /// Returns the lines to print.
    pub(super) fn lines(&self, mode: ImportMode) -> Vec<String> {
        let mut lines = vec![
            format!("lines read: {}", self.read()),
            format!("new events: {}", self.new),
            format!("already stored: {}", self.stored),
            format!("rejected: {}", self.rejected),
        ];
        if self.lost_links > 0 {
            let count = self.lost_links;
            lines.push(format!("new events whose link does not exist: {count}"));
        }
        if self.lost_clicks > 0 {
            let count = self.lost_clicks;
            lines.push(format!("new events whose click does not exist: {count}"));
        }
        for (currency, micros) in &self.revenue {
            let sum = Amount::from_micros(*micros);
            lines.push(format!("revenue of new events: {sum} {currency}"));
        }
        if mode == ImportMode::DryRun {
            lines.push("dry run: nothing was stored".to_owned());
        }
        let mut rejections: Vec<&RejectedLine> = self.rejections.iter().collect();
        rejections.sort_by_key(|rejected| &rejected.place);
        for RejectedLine { place, reason } in rejections {
            lines.push(format!("{}:{}: {reason}", place.file, place.line));
        }
        let listed = u64::try_from(self.rejections.len()).unwrap_or(u64::MAX);
        if self.rejected > listed {
            let further = self.rejected - listed;
            lines.push(format!("and {further} more rejected lines"));
        }
        lines
    }
}
