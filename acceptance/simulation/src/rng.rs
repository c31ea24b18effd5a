//! Random numbers from a seed.

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha12Rng;

/// A stream of random numbers. Each part of a run has its own stream, so that one part does not
/// change the numbers of another.
#[derive(Debug, Clone)]
pub(crate) struct Rng(ChaCha12Rng);

impl Rng {
    /// Creates the stream of this name.
    pub(crate) fn new(seed: u64, stream: &str) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        for (place, byte) in bytes[8..].iter_mut().zip(stream.bytes()) {
            *place = byte;
        }
        Self(ChaCha12Rng::from_seed(bytes))
    }

    /// Returns a number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0.next_u64() % limit.max(1)
    }

    /// Returns an index of a list of this length.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// Returns a number in `from..=to`.
    pub(crate) fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    /// Returns true with this probability.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Returns an element of a list.
    pub(crate) fn choose<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.index(list.len())]
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}
