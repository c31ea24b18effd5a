//! AES key unwrap (RFC 3394), which protects the content key of a Play Integrity token.

use crate::keyring::constant_time_eq;
use aes_gcm::aes::Aes256;
use aes_gcm::aes::cipher::{Array, BlockCipherDecrypt as _, KeyInit as _};

/// Length of a wrapped 256-bit key in bytes: four halves of a block and the check value.
pub(super) const WRAPPED_BYTES: usize = 40;
/// Length of half a cipher block in bytes.
const HALF_BYTES: usize = 8;
/// Number of rounds that RFC 3394 prescribes.
const ROUNDS: u64 = 6;
/// Initial value that a correctly unwrapped key starts with.
const CHECK_VALUE: [u8; HALF_BYTES] = [0xa6; HALF_BYTES];

/// Unwraps a 256-bit key. Returns `None` if the wrapping key is wrong.
pub(super) fn unwrap_key(
    wrapping_key: &[u8; 32],
    wrapped: &[u8; WRAPPED_BYTES],
) -> Option<[u8; 32]> {
    let cipher = Aes256::new(&Array::from(*wrapping_key));
    let (check, halves) = wrapped.split_first_chunk::<HALF_BYTES>()?;
    let mut check = *check;
    let mut key: [u8; 32] = halves.try_into().ok()?;
    let count = key.len() / HALF_BYTES;
    for round in (0..ROUNDS).rev() {
        for index in (0..count).rev() {
            let step = round * count as u64 + index as u64 + 1;
            let half = &mut key[index * HALF_BYTES..(index + 1) * HALF_BYTES];
            let mut block = [0; 2 * HALF_BYTES];
            let masked = u64::from_be_bytes(check) ^ step;
            block[..HALF_BYTES].copy_from_slice(&masked.to_be_bytes());
            block[HALF_BYTES..].copy_from_slice(half);
            let mut block = Array::from(block);
            cipher.decrypt_block(&mut block);
            check.copy_from_slice(&block[..HALF_BYTES]);
            half.copy_from_slice(&block[HALF_BYTES..]);
        }
    }
    constant_time_eq(&check, &CHECK_VALUE).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::digest::from_hex;

    fn bytes<const N: usize>(hex: &str) -> [u8; N] {
        from_hex(hex).unwrap().try_into().unwrap()
    }

    /// RFC 3394, section 4.6: 256 bits of key data with a 256-bit key.
    #[test]
    fn unwraps_the_published_example() {
        let wrapping_key =
            bytes("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
        let wrapped = bytes(
            "28c9f404c4b810f4cbccb35cfb87f8263f5786e2d80ed326cbc7f0e71a99f43bfb988b9b7a02dd21",
        );
        let key = bytes("00112233445566778899aabbccddeeff000102030405060708090a0b0c0d0e0f");
        assert_eq!(unwrap_key(&wrapping_key, &wrapped), Some(key));
        assert_eq!(unwrap_key(&[0; 32], &wrapped), None);
        let mut changed = wrapped;
        changed[39] ^= 1;
        assert_eq!(unwrap_key(&wrapping_key, &changed), None);
    }
}
