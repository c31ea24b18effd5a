//! Decompresses gzipped bodies with limits on output, compression ratio, members and blocks.
//!
//! A limit on the output alone is not enough: empty members and empty blocks produce no output, but
//! each costs the work of setting up a member or its code tables.

use flate2::Crc;
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::{
    TINFL_FLAG_STOP_ON_BLOCK_BOUNDARY, TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF,
};
use miniz_oxide::inflate::core::{DecompressorOxide, decompress as inflate};

/// Largest accepted ratio of output to input. Deflate reaches about 1000; JSON rarely exceeds 20.
const RATIO_MAX: usize = 100;
/// Output that is accepted at any ratio, so that short repetitive bodies are not rejected.
const RATIO_FREE_BYTES: usize = 64 * 1024;
/// First size of the output buffer.
const BUFFER_BYTES: usize = 16 * 1024;

const FLAGS: u32 = TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF | TINFL_FLAG_STOP_ON_BLOCK_BOUNDARY;

/// First bytes of a member: the magic number and the only defined compression method.
const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
/// Length of a member's fixed header.
const HEADER_BYTES: usize = 10;
/// Flags of a member's header: checksum of the header, extra field, file name, comment.
const HEADER_CRC: u8 = 2;
const EXTRA: u8 = 4;
const NAME: u8 = 8;
const COMMENT: u8 = 16;
const RESERVED: u8 = 0xe0;

/// Limits for one decompression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GzipLimits {
    /// Bytes of input, and bytes of output.
    pub(crate) bytes: usize,
    /// Concatenated members.
    pub(crate) members: usize,
    /// Deflate blocks in all members.
    pub(crate) blocks: usize,
}

impl GzipLimits {
    /// Limits for senders that are authenticated. Encoders write a block per 16 KiB or more, except
    /// those that flush after every record.
    pub(crate) const AUTHENTICATED: Self = Self {
        bytes: crate::body::BODY_BYTES_MAX,
        members: 64,
        blocks: 4_096,
    };

    /// Limits while the sender is not authenticated, because the proof is in the body.
    pub(crate) const fn unproven(bytes: usize) -> Self {
        Self {
            bytes,
            members: 4,
            blocks: 64,
        }
    }
}

/// Reason for rejecting a compressed body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GzipError {
    /// Not gzip, truncated, or a wrong checksum.
    Invalid,
    /// The output exceeds the limit.
    TooLarge,
    /// Too many members or blocks, or too high a compression ratio.
    TooCostly,
}

/// Decompresses all members.
pub(crate) fn decompress(packed: &[u8], limits: GzipLimits) -> Result<Vec<u8>, GzipError> {
    let mut run = Decompression::new(packed, limits);
    run.read_members()?;
    run.output.truncate(run.written);
    Ok(run.output)
}

/// A decompression in progress.
struct Decompression<'a> {
    limits: GzipLimits,
    /// Input that has not been read.
    rest: &'a [u8],
    /// Most bytes of output, given the limits and the size of the input.
    output_max: usize,
    output: Vec<u8>,
    /// Bytes of `output` that are in use.
    written: usize,
    members: usize,
    blocks: usize,
}

impl<'a> Decompression<'a> {
    fn new(packed: &'a [u8], limits: GzipLimits) -> Self {
        let by_ratio = packed.len().saturating_mul(RATIO_MAX).max(RATIO_FREE_BYTES);
        let output_max = limits.bytes.min(by_ratio);
        Self {
            limits,
            rest: packed,
            output_max,
            output: vec![0; output_max.min(BUFFER_BYTES)],
            written: 0,
            members: 0,
            blocks: 0,
        }
    }

    fn read_members(&mut self) -> Result<(), GzipError> {
        let mut inflater = Box::<DecompressorOxide>::default();
        loop {
            self.members += 1;
            if self.members > self.limits.members {
                return Err(GzipError::TooCostly);
            }
            self.read_header()?;
            inflater.init();
            let start = self.written;
            self.read_blocks(&mut inflater, start)?;
            self.check_trailer(start)?;
            if self.rest.is_empty() {
                return Ok(());
            }
        }
    }

    fn take(&mut self, bytes: usize) -> Result<&'a [u8], GzipError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(bytes)
            .ok_or(GzipError::Invalid)?;
        self.rest = rest;
        Ok(taken)
    }

    fn skip_text(&mut self) -> Result<(), GzipError> {
        let length = self.rest.iter().position(|byte| *byte == 0);
        self.take(length.ok_or(GzipError::Invalid)? + 1).map(drop)
    }

    fn read_header(&mut self) -> Result<(), GzipError> {
        let header = self.take(HEADER_BYTES)?;
        let flags = header[3];
        if !header.starts_with(&MAGIC) || flags & RESERVED != 0 {
            return Err(GzipError::Invalid);
        }
        if flags & EXTRA != 0 {
            let length = self.take(2)?;
            self.take(usize::from(u16::from_le_bytes([length[0], length[1]])))?;
        }
        for text in [NAME, COMMENT] {
            if flags & text != 0 {
                self.skip_text()?;
            }
        }
        if flags & HEADER_CRC != 0 {
            self.take(2)?;
        }
        Ok(())
    }

    /// Reads the blocks of a member whose output begins at `start`.
    fn read_blocks(
        &mut self,
        inflater: &mut DecompressorOxide,
        start: usize,
    ) -> Result<(), GzipError> {
        loop {
            let output = &mut self.output[start..];
            let (status, read, written) =
                inflate(inflater, self.rest, output, self.written - start, FLAGS);
            self.take(read)?;
            self.written += written;
            match status {
                TINFLStatus::Done => return self.count_block(),
                TINFLStatus::BlockBoundary => self.count_block()?,
                TINFLStatus::HasMoreOutput => self.grow()?,
                _ => return Err(GzipError::Invalid),
            }
        }
    }

    fn count_block(&mut self) -> Result<(), GzipError> {
        self.blocks += 1;
        if self.blocks > self.limits.blocks {
            return Err(GzipError::TooCostly);
        }
        Ok(())
    }

    /// Doubles the output buffer, up to the limit.
    fn grow(&mut self) -> Result<(), GzipError> {
        if self.output.len() >= self.output_max {
            return Err(if self.output_max < self.limits.bytes {
                GzipError::TooCostly
            } else {
                GzipError::TooLarge
            });
        }
        let bytes = self.output.len().saturating_mul(2).min(self.output_max);
        self.output.resize(bytes, 0);
        Ok(())
    }

    /// Compares the checksum and the length of a member with its output.
    fn check_trailer(&mut self, start: usize) -> Result<(), GzipError> {
        let mut crc = Crc::new();
        crc.update(&self.output[start..self.written]);
        let mut expected = crc.sum().to_le_bytes().to_vec();
        expected.extend(crc.amount().to_le_bytes());
        if self.take(expected.len())? != expected {
            return Err(GzipError::Invalid);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::write::GzEncoder;
    use flate2::{Compression, GzBuilder};
    use proptest::prelude::*;
    use rstest::rstest;
    use std::io::Write as _;

    const LIMITS: GzipLimits = GzipLimits::AUTHENTICATED;

    fn gzip(bytes: &[u8], level: u32) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// Returns a member with this deflate stream, which produces no output.
    fn empty_member(deflate: &[u8]) -> Vec<u8> {
        let mut member = MAGIC.to_vec();
        member.resize(HEADER_BYTES, 0);
        member.extend(deflate);
        member.extend([0; 8]);
        member
    }

    /// Runs a decompression and returns its error, members and blocks.
    fn cost(packed: &[u8]) -> (Option<GzipError>, usize, usize) {
        let mut run = Decompression::new(packed, LIMITS);
        let error = run.read_members().err();
        (error, run.members, run.blocks)
    }

    #[test]
    fn a_mebibyte_of_empty_members_is_rejected_after_a_few() {
        let member = empty_member(&[3, 0]);
        let packed = member.repeat(1024 * 1024 / member.len());
        assert!(packed.len() > 1_000_000);
        let (error, members, blocks) = cost(&packed);
        assert_eq!(error, Some(GzipError::TooCostly));
        assert_eq!((members, blocks), (LIMITS.members + 1, LIMITS.members));
    }

    #[test]
    fn a_mebibyte_of_empty_blocks_is_rejected_after_a_few() {
        // Stored blocks of length zero, none of them the last.
        let packed = empty_member(&[0, 0, 0, 0xff, 0xff].repeat(200_000));
        let (error, members, blocks) = cost(&packed);
        assert_eq!(error, Some(GzipError::TooCostly));
        assert_eq!((members, blocks), (1, LIMITS.blocks + 1));
    }

    #[rstest]
    #[case::ratio(600 * 1024, 9, GzipError::TooCostly)]
    #[case::size(LIMITS.bytes + 1, 0, GzipError::TooLarge)]
    fn bombs_are_rejected(#[case] bytes: usize, #[case] level: u32, #[case] expected: GzipError) {
        let packed = gzip(&vec![b' '; bytes], level);
        assert_eq!(decompress(&packed, LIMITS), Err(expected));
    }

    #[rstest]
    #[case::empty(b"")]
    #[case::not_gzip(b"{}")]
    #[case::another_method(b"\x1f\x8b\x07\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\0\0")]
    #[case::reserved_flag(b"\x1f\x8b\x08\x20\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\0\0")]
    #[case::name_without_end(b"\x1f\x8b\x08\x08\0\0\0\0\0\0abc")]
    #[case::wrong_checksum(b"\x1f\x8b\x08\0\0\0\0\0\0\0\x03\0\x01\0\0\0\0\0\0\0")]
    #[case::wrong_length(b"\x1f\x8b\x08\0\0\0\0\0\0\0\x03\0\0\0\0\0\x01\0\0\0")]
    #[case::distance_before_the_start(b"\x1f\x8b\x08\0\0\0\0\0\0\0\x03\x02\0\0\0\0\0\0\0\0\0")]
    fn invalid_input(#[case] packed: &[u8]) {
        assert_eq!(decompress(packed, LIMITS), Err(GzipError::Invalid));
    }

    #[test]
    fn a_second_member_cannot_refer_to_the_first() {
        // A fixed block with a match of length 3 at distance 1, then the end of the block.
        let packed = [gzip(b"a", 6), empty_member(&[3, 2, 0])].concat();
        assert_eq!(decompress(&packed, LIMITS), Err(GzipError::Invalid));
    }

    #[test]
    fn header_fields_are_skipped() {
        let builder = GzBuilder::new()
            .extra(vec![1, 2, 3])
            .filename("a.json")
            .comment("a comment");
        let mut encoder = builder.write(Vec::new(), Compression::default());
        encoder.write_all(b"{}").unwrap();
        let packed = encoder.finish().unwrap();
        assert_eq!(decompress(&packed, LIMITS).unwrap(), b"{}");
    }

    #[test]
    fn a_body_of_the_maximum_size_is_accepted_at_every_level() {
        let text: Vec<u8> = (0_u32..)
            .flat_map(|number| format!("{{\"n\":{number}}},").into_bytes())
            .take(LIMITS.bytes)
            .collect();
        for level in 0..=9 {
            let packed = gzip(&text, level);
            assert!(decompress(&packed, LIMITS).unwrap() == text, "{level}");
        }
    }

    proptest! {
        #[test]
        fn members_are_concatenated(
            parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40_000), 1..4),
            level in 0_u32..10,
        ) {
            let packed: Vec<u8> = parts.iter().flat_map(|part| gzip(part, level)).collect();
            prop_assert_eq!(decompress(&packed, LIMITS).unwrap(), parts.concat());
        }

        #[test]
        fn damaged_input_never_panics(
            text in proptest::collection::vec(any::<u8>(), 0..2_000),
            cut in any::<prop::sample::Index>(),
            value: u8,
        ) {
            let mut packed = gzip(&text, 6);
            let index = cut.index(packed.len());
            packed[index] = value;
            let _any_outcome_is_fine = decompress(&packed, LIMITS);
            let _any_outcome_is_fine = decompress(&packed[..index], LIMITS);
        }
    }
}
