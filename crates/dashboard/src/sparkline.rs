//! Sparklines: small line charts without axes.

use crate::chart::coordinate;

/// Size of a sparkline.
const SPARK_WIDTH: i64 = 120;
const SPARK_HEIGHT: i64 = 32;

/// Returns the points of a sparkline.
pub(crate) fn sparkline(values: &[i64]) -> String {
    let highest = values.iter().copied().max().unwrap_or(0).max(1);
    let steps = i64::try_from(values.len().saturating_sub(1))
        .unwrap_or(1)
        .max(1);
    let point = |(index, value): (usize, &i64)| {
        let x = SPARK_WIDTH * 100 * i64::try_from(index).unwrap_or(0) / steps;
        let share = i128::from((SPARK_HEIGHT - 4) * 100) * i128::from((*value).max(0))
            / i128::from(highest);
        let y = (SPARK_HEIGHT - 2) * 100 - i64::try_from(share).unwrap_or(0);
        format!("{},{}", coordinate(x), coordinate(y))
    };
    let points: Vec<String> = values.iter().enumerate().map(point).collect();
    points.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_values_lie_on_the_baseline() {
        assert_eq!(sparkline(&[0, 0]), "0,30 120,30");
    }
}
