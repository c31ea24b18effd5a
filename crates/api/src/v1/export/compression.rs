//! Bytes on their way out, packed or not.

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write as _;

/// What was written and not yet taken.
pub(super) enum Compressor {
    Plain(Vec<u8>),
    Gzip(GzEncoder<Vec<u8>>),
}

impl Compressor {
    pub(super) fn new(gzip: bool) -> Self {
        if gzip {
            // The fastest: a slow link gains most from the first step, and nobody waits for the others.
            Self::Gzip(GzEncoder::new(Vec::new(), Compression::fast()))
        } else {
            Self::Plain(Vec::new())
        }
    }

    pub(super) fn write(&mut self, bytes: Vec<u8>) {
        match self {
            // Mostly everything before it was taken: a part is sent as it was written.
            Self::Plain(written) if written.is_empty() => *written = bytes,
            Self::Plain(written) => written.extend_from_slice(&bytes),
            // Writing to a vector cannot fail.
            Self::Gzip(encoder) => drop(encoder.write_all(&bytes)),
        }
    }

    /// What can be sent by now.
    pub(super) fn take(&mut self) -> Bytes {
        let written = match self {
            Self::Plain(written) => written,
            Self::Gzip(encoder) => encoder.get_mut(),
        };
        std::mem::take(written).into()
    }

    /// The rest.
    pub(super) fn finish(self) -> Bytes {
        match self {
            Self::Plain(written) => written.into(),
            Self::Gzip(encoder) => encoder.finish().unwrap_or_default().into(),
        }
    }
}
