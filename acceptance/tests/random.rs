//! Random values for tests that generate requests.

use serde_json::{Value, json};

/// Returns a number from the environment.
#[expect(
    clippy::disallowed_methods,
    reason = "the environment sets the length of a run"
)]
pub(crate) fn env_number(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |text| text.parse().expect("a number"))
}

/// A small random generator that gives the same run for the same seed.
pub(crate) struct SeededRng(pub(crate) u64);

impl SeededRng {
    /// Returns any number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below the bound.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    /// Returns one of the items.
    pub(crate) fn pick<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> &'a T {
        items[self.below(items.len())]
    }
}

/// Returns a value that a field rarely has.
pub(crate) fn odd_value(rng: &mut SeededRng) -> Value {
    let texts = [
        "",
        "0",
        "true",
        "39",
        "5239",
        "high",
        "none",
        "4.0",
        "1.0",
        "\u{0}",
        "\u{2063}",
        "é🚀",
        "AAAA.AAAA.AAAA",
    ];
    match rng.below(12) {
        0 => Value::Null,
        1 => json!(rng.next().is_multiple_of(2)),
        2 => json!(i64::MIN),
        3 => json!(u64::MAX),
        4 => json!(1.5),
        5 => json!(-1),
        6 => json!(rng.below(70)),
        7 => json!([[], {}]),
        8 => json!({"a": {"b": [1]}}),
        9 => json!("x".repeat(rng.below(400))),
        10 => json!(1e300),
        _ => json!(texts[rng.below(texts.len())]),
    }
}

/// Returns fewer than `length_max` random bytes.
pub(crate) fn random_bytes(rng: &mut SeededRng, length_max: usize) -> Vec<u8> {
    let length = rng.below(length_max);
    (0..length).map(|_| rng.next().to_le_bytes()[0]).collect()
}
