//! Random numbers for generated histories.

/// A small random number generator. The same seed gives the same history.
pub(super) struct HistoryRandom(u64);

impl HistoryRandom {
    pub(super) const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let end = u64::try_from(end).expect("a small number");
        usize::try_from((mixed ^ (mixed >> 31)) % end).expect("a small number")
    }

    pub(super) fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    pub(super) fn shuffle<T>(&mut self, all: &mut [T]) {
        for place in (1..all.len()).rev() {
            all.swap(place, self.below(place + 1));
        }
    }
}
