//! Tables of costs: Tributary's own columns, or an export from a network's ad manager.
//!
//! The header row decides which columns are read. [`CostTableChoice`] overrides the decision.

mod columns;
#[cfg(test)]
mod tests;

pub use columns::{ColumnOr, CostColumns, CostLayout, CostTableChoice, HEADER_ROWS_MAX};

use super::cost::{COSTS_MAX, Cost, CostKey, CostOrigin, parse_named_network};
use super::written_amount::{DecimalMark, decimal_mark, parse_written_amount};
use crate::attribution::CreditedNetwork;
use crate::vocabulary::currency::Currency;
use crate::vocabulary::day::Day;
use crate::vocabulary::fault::{FaultCode, Faults, Problem};
use crate::vocabulary::money::Amount;
use crate::vocabulary::text::check_length;
use std::collections::BTreeMap;

/// Longest campaign id in characters, the same as for clicks.
pub const CAMPAIGN_CHARS_MAX: usize = 500;
/// What exports write for "no value".
const BLANKS: [&str; 4] = ["", "-", "--", "—"];
/// Time behind the day in some exports.
const MIDNIGHT: &str = " 00:00:00";

/// The costs in a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableCosts {
    /// The costs.
    pub costs: Vec<Cost>,
    /// Number of rows with totals, which are not costs.
    pub skipped: usize,
}

/// Parses a campaign id.
pub fn parse_campaign(text: &str) -> Result<String, Problem> {
    check_length(text, 0, CAMPAIGN_CHARS_MAX).map(|()| text.to_owned())
}

impl CostColumns {
    /// Reads the rows below the header row. `path` names a row in faults.
    ///
    /// An export may have a row for each ad set or ad, so rows of the same day and campaign are
    /// added up. In Tributary's own columns, the last row wins.
    pub fn read(
        &self,
        rows: &[Vec<String>],
        path: impl Fn(usize) -> String,
        faults: &mut Faults,
    ) -> TableCosts {
        let amounts = rows.iter().filter(|row| !self.is_total(row));
        let mark = decimal_mark(amounts.map(|row| cell(row, self.amount)));
        let mut found = TableCosts::default();
        let mut by_key: BTreeMap<CostKey, usize> = BTreeMap::new();
        for (number, row) in rows.iter().enumerate() {
            if found.costs.len() > COSTS_MAX || faults.is_full() {
                break;
            }
            if self.is_total(row) {
                found.skipped += 1;
                continue;
            }
            let path = path(number);
            let Some(cost) = self.read_row(row, mark, &path, faults) else {
                continue;
            };
            let earlier = by_key.get(&cost.key()).filter(|_| self.is_export());
            let earlier = earlier.and_then(|index| found.costs.get_mut(*index));
            if let Some(earlier) = earlier {
                faults.check(&path, add(earlier, &cost));
            } else {
                by_key.insert(cost.key(), found.costs.len());
                found.costs.push(cost);
            }
        }
        if found.costs.is_empty() && faults.is_empty() {
            let problem = Problem::new(FaultCode::Required, "Must contain at least one cost.");
            faults.add("costs", problem);
        }
        found
    }

    /// Returns whether a row contains totals: it has no day or no campaign.
    fn is_total(&self, row: &[String]) -> bool {
        let day = cell(row, self.day);
        let is_blank = |text: &str| BLANKS.contains(&text);
        let starts_with_total = |text: &str| {
            let start = text.get(..5);
            start.is_some_and(|start| start.eq_ignore_ascii_case("total"))
        };
        let campaign = self.campaign.map(|index| cell(row, index));
        self.is_export()
            && (is_blank(day) || starts_with_total(day) || campaign.is_some_and(is_blank))
    }

    fn read_row(
        &self,
        row: &[String],
        mark: Option<DecimalMark>,
        path: &str,
        faults: &mut Faults,
    ) -> Option<Cost> {
        if !self.is_export() && row.len() != self.width {
            let message = format!(
                "Must have {} values, like the header row. Put values that contain the separator \
                 in double quotes.",
                self.width
            );
            faults.add(path, Problem::new(FaultCode::InvalidFormat, message));
            return None;
        }
        let of = |name: &str| format!("{path}.{name}");
        let day = faults.check(&of("day"), self.day(row));
        let network = match &self.network {
            ColumnOr::Value(network) => Ok(*network),
            ColumnOr::Column(index) => parse_named_network(cell(row, *index)),
        };
        let network: Option<CreditedNetwork> = faults.check(&of("network"), network);
        let currency = match &self.currency {
            ColumnOr::Value(currency) => Ok(*currency),
            ColumnOr::Column(index) if cell(row, *index).is_empty() && !self.is_export() => {
                Ok(Currency::USD)
            }
            ColumnOr::Column(index) => Currency::parse(cell(row, *index)),
        };
        let currency = faults.check(&of("currency"), currency);
        let amount = self.amount(row, mark, currency);
        let amount = faults.check(&of("amount"), amount);
        let campaign = self.campaign.map_or("", |index| cell(row, index));
        let campaign = faults.check(&of("campaign"), parse_campaign(campaign));
        Some(Cost {
            day: day?,
            network: network?,
            campaign: campaign?,
            amount: amount?,
            currency: currency?,
            origin: CostOrigin::Manual,
        })
    }

    fn day(&self, row: &[String]) -> Result<Day, Problem> {
        let text = cell(row, self.day);
        let text = text.strip_suffix(MIDNIGHT).unwrap_or(text);
        let day = Day::parse(text)?;
        let until = self.day_until.map(|index| cell(row, index));
        if until.is_some_and(|until| until != text) {
            let message = "The row covers several days. Export the report by day.";
            return Err(Problem::new(FaultCode::InvalidFormat, message));
        }
        Ok(day)
    }

    fn amount(
        &self,
        row: &[String],
        mark: Option<DecimalMark>,
        currency: Option<Currency>,
    ) -> Result<Amount, Problem> {
        let text = cell(row, self.amount);
        if self.is_export() && BLANKS.contains(&text) {
            return Ok(Amount::ZERO);
        }
        let written = parse_written_amount(text, mark)?;
        if written.amount < Amount::ZERO {
            return Err(Problem::new(FaultCode::OutOfRange, "Must not be negative."));
        }
        if written.currency.is_some_and(|one| Some(one) != currency) {
            let message = "The currency symbol contradicts the currency of the row.";
            return Err(Problem::new(FaultCode::Different, message));
        }
        Ok(written.amount)
    }
}

/// Adds a row of the same day and campaign.
fn add(sum: &mut Cost, cost: &Cost) -> Result<(), Problem> {
    if sum.currency != cost.currency {
        let message = "Must have the same currency as the other rows of its day and campaign.";
        return Err(Problem::new(FaultCode::Different, message));
    }
    let micros = sum.amount.micros().saturating_add(cost.amount.micros());
    // Parsing checks the range.
    sum.amount = Amount::parse_text(&Amount::from_micros(micros).to_string())?;
    Ok(())
}

fn cell(row: &[String], index: usize) -> &str {
    row.get(index).map_or("", String::as_str)
}
