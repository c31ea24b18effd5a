//! Compresses exported bytes with gzip if requested.

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write as _;

/// Buffers the written bytes until they are taken to be sent.
pub(super) enum Compressor {
    Plain(Vec<u8>),
    Gzip(GzEncoder<Vec<u8>>),
}

impl Compressor {
    pub(super) fn new(gzip: bool) -> Self {
        if gzip {
            // The fastest level: most of the gain for the least CPU time.
            Self::Gzip(GzEncoder::new(Vec::new(), Compression::fast()))
        } else {
            Self::Plain(Vec::new())
        }
    }

    pub(super) fn write(&mut self, bytes: Vec<u8>) {
        match self {
            // Usually `written` is empty; then the bytes are moved without a copy.
            Self::Plain(written) if written.is_empty() => *written = bytes,
            Self::Plain(written) => written.extend_from_slice(&bytes),
            // Writing to a vector cannot fail.
            Self::Gzip(encoder) => drop(encoder.write_all(&bytes)),
        }
    }

    /// Takes the bytes that can be sent now.
    pub(super) fn take(&mut self) -> Bytes {
        let written = match self {
            Self::Plain(written) => written,
            Self::Gzip(encoder) => encoder.get_mut(),
        };
        std::mem::take(written).into()
    }

    /// Finishes the stream and returns the remaining bytes.
    pub(super) fn finish(self) -> Bytes {
        match self {
            Self::Plain(written) => written.into(),
            Self::Gzip(encoder) => encoder.finish().unwrap_or_default().into(),
        }
    }
}
