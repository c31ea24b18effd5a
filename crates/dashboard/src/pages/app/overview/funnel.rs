//! The funnel from click to purchase.

use crate::text;
use tributary_domain::report::Figures;

/// A stage in the funnel.
pub(super) struct Stage {
    pub(super) label: &'static str,
    pub(super) value: String,
    /// Width relative to the widest stage, in tenths of a percent.
    pub(super) width: i64,
    pub(super) share: String,
}

/// Returns the stages.
pub(super) fn funnel(total: &Figures) -> Vec<Stage> {
    let stages = [
        ("Clicks", total.clicks),
        ("Installs", total.installs),
        ("Trials", total.trials),
        ("Purchases", total.purchases),
    ];
    let widest = stages
        .iter()
        .map(|(_, count)| *count)
        .max()
        .unwrap_or(0)
        .max(1);
    let mut before: Option<i64> = None;
    stages
        .into_iter()
        .map(|(label, count)| {
            let share = before
                .filter(|before| *before > 0)
                .map(|before| format!("{} of the previous stage", text::percent(count, before)))
                .unwrap_or_default();
            before = Some(count);
            Stage {
                label,
                value: text::count(count),
                width: i64::try_from(i128::from(count) * 1_000 / i128::from(widest)).unwrap_or(0),
                share,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stage_widths_are_relative_to_the_widest_stage() {
        let total = Figures {
            clicks: 50,
            installs: 100,
            trials: 25,
            ..Figures::default()
        };
        let stages = funnel(&total);
        let widths: Vec<i64> = stages.iter().map(|stage| stage.width).collect();
        assert_eq!(widths, [500, 1_000, 250, 0]);
        assert_eq!(stages[2].share, "25.0 % of the previous stage");
    }
}
