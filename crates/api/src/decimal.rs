//! Exact JSON numbers, written digit by digit to avoid floats.

use serde_json::value::RawValue;
use tributary_domain::vocabulary::money::{Amount, MICROS_PER_UNIT};

/// Hundredths per unit.
const HUNDREDTHS: i64 = 100;

/// Writes an amount as a JSON number.
pub(crate) fn number(amount: Amount) -> Option<Box<RawValue>> {
    RawValue::from_string(amount.to_string()).ok()
}

/// Writes hundredths as a JSON number: 85 becomes `0.85`.
pub(crate) fn hundredths(hundredths: u32) -> Option<Box<RawValue>> {
    let micros = i64::from(hundredths) * (MICROS_PER_UNIT / HUNDREDTHS);
    number(Amount::from_micros(micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hundredths_are_written_exactly() {
        let written = |value| hundredths(value).map(|raw| raw.get().to_owned());
        assert_eq!(written(85).as_deref(), Some("0.85"));
        assert_eq!(written(100).as_deref(), Some("1"));
        assert_eq!(written(262).as_deref(), Some("2.62"));
        assert_eq!(written(0).as_deref(), Some("0"));
    }
}
