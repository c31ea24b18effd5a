//! The metric columns in the Explore table.

use crate::text;
use tributary_domain::report::ReportFigures;
use tributary_domain::vocabulary::money::Amount;

/// Unit of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Count,
    /// Amount in millionths of a dollar.
    Money,
    /// Ratio in millionths.
    Ratio,
}

/// A metric. Its value is `None` if it cannot be computed.
pub(super) struct MetricColumn {
    pub(super) word: &'static str,
    pub(super) label: &'static str,
    unit: Unit,
    pub(super) of: fn(&ReportFigures) -> Option<i64>,
}

const fn column(
    word: &'static str,
    label: &'static str,
    unit: Unit,
    of: fn(&ReportFigures) -> Option<i64>,
) -> MetricColumn {
    MetricColumn {
        word,
        label,
        unit,
        of,
    }
}

const fn count(
    word: &'static str,
    label: &'static str,
    of: fn(&ReportFigures) -> Option<i64>,
) -> MetricColumn {
    column(word, label, Unit::Count, of)
}

/// Index of the default sort column.
pub(super) const SORT_DEFAULT: usize = 1;

pub(super) const COLUMNS: [MetricColumn; 20] = [
    count("clicks", "Clicks", |one| Some(one.figures.clicks)),
    count("installs", "Installs", |one| Some(one.figures.installs)),
    column("conversionRate", "Installs per click", Unit::Ratio, |one| {
        one.conversion_rate().map(Amount::micros)
    }),
    count("organicInstalls", "Organic", |one| {
        Some(one.figures.organic_installs)
    }),
    count("signUps", "Sign-ups", |one| Some(one.figures.sign_ups)),
    count("trials", "Trials", |one| Some(one.figures.trials)),
    count("qualifiedTrials", "Qualified", |one| {
        Some(one.figures.qualified_trials)
    }),
    count("subscriptions", "Subscriptions", |one| {
        Some(one.figures.subscriptions)
    }),
    count("purchases", "Purchases", |one| Some(one.figures.purchases)),
    count("renewals", "Renewals", |one| Some(one.figures.renewals)),
    count("refunds", "Refunds", |one| Some(one.figures.refunds)),
    count("events", "Events", |one| Some(one.figures.events)),
    count("payingDevices", "New payers", |one| {
        Some(one.figures.paying_devices)
    }),
    column("netRevenue", "Net revenue", Unit::Money, |one| {
        Some(one.figures.net_micros())
    }),
    count("heldInstalls", "Held installs", |one| {
        Some(one.figures.held_installs)
    }),
    column("heldRevenue", "Held revenue", Unit::Money, |one| {
        Some(one.figures.held_revenue_micros)
    }),
    column("arpu", "Per install", Unit::Money, |one| {
        one.arpu().map(Amount::micros)
    }),
    column("cost", "Cost", Unit::Money, |one| one.cost),
    column("cpi", "Cost per install", Unit::Money, |one| {
        one.cpi().map(Amount::micros)
    }),
    column("roas", "ROAS", Unit::Ratio, |one| {
        one.roas().map(Amount::micros)
    }),
];

impl MetricColumn {
    /// Formats the value for the page.
    pub(super) fn write(&self, row: &ReportFigures) -> String {
        let Some(value) = (self.of)(row) else {
            return "–".to_owned();
        };
        match self.unit {
            Unit::Count => text::count(value),
            Unit::Money => text::usd(Amount::from_micros(value)),
            Unit::Ratio => text::ratio(Amount::from_micros(value)),
        }
    }

    /// Formats the value for the CSV file; empty if it cannot be computed.
    pub(super) fn plain(&self, row: &ReportFigures) -> String {
        let plain = |value: i64| match self.unit {
            Unit::Count => value.to_string(),
            Unit::Money | Unit::Ratio => Amount::from_micros(value).to_string(),
        };
        (self.of)(row).map(plain).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_domain::report::Figures;

    fn written(row: &ReportFigures, word: &str) -> (String, String) {
        let column = COLUMNS.iter().find(|one| one.word == word).unwrap();
        (column.write(row), column.plain(row))
    }

    #[test]
    fn an_unknown_value_is_not_shown_as_zero() {
        let mut row = ReportFigures {
            figures: Figures {
                installs: 3,
                revenue_micros: 10_000_000,
                ..Figures::default()
            },
            cost: None,
        };
        let nothing = ("–".to_owned(), String::new());
        assert_eq!(written(&row, "cpi"), nothing);
        assert_eq!(written(&row, "conversionRate"), nothing);
        row.cost = Some(4_000_000);
        assert_eq!(written(&row, "cpi").0, "$1.33");
        assert_eq!(written(&row, "roas"), ("2.50".to_owned(), "2.5".to_owned()));
        assert_eq!(written(&row, "arpu").1, "3.333333");
    }
}
