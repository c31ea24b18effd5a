//! Decompresses bodies outside of the async threads, a few at a time.

use crate::body::too_large;
use crate::error::{ApiError, Code};
use crate::gzip::{GzipError, GzipLimits, decompress};
use crate::metrics;
use axum::http::{HeaderValue, header};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Number of concurrent decompressions of each kind. Each takes a few milliseconds at most, so more
/// would only take processor time from other requests.
const SLOTS: usize = 2;
/// How long a request waits for a slot. Hundreds of requests are decompressed in that time.
const SLOT_WAIT: Duration = Duration::from_secs(2);
/// `Retry-After` in seconds for requests that got no slot.
const RETRY_SECONDS: u64 = 1;

/// Decompresses request bodies. Bodies of unauthenticated senders have their own slots, so that they
/// cannot delay those of authenticated ones.
#[derive(Debug)]
pub struct BodyDecompressor {
    authenticated: Arc<Semaphore>,
    unproven: Arc<Semaphore>,
}

impl Default for BodyDecompressor {
    fn default() -> Self {
        let slots = || Arc::new(Semaphore::new(SLOTS));
        Self {
            authenticated: slots(),
            unproven: slots(),
        }
    }
}

impl BodyDecompressor {
    /// Decompresses a body. Returns 429 if no slot becomes free in time.
    pub(crate) async fn run(&self, packed: Bytes, limits: GzipLimits) -> Result<Bytes, ApiError> {
        let slots = if limits == GzipLimits::AUTHENTICATED {
            &self.authenticated
        } else {
            &self.unproven
        };
        let slot = tokio::time::timeout(SLOT_WAIT, slots.clone().acquire_owned()).await;
        let Ok(Ok(slot)) = slot else {
            metrics::count_decompression("busy");
            return Err(busy());
        };
        let work = tokio::task::spawn_blocking(move || {
            // Held until the work ends, even if the client disconnects earlier.
            let _slot = slot;
            decompress(&packed, limits)
        });
        let result = work.await.map_err(|error| {
            tracing::error!(%error, "decompression failed");
            ApiError::internal()
        })?;
        metrics::count_decompression(if result.is_ok() { "ok" } else { "rejected" });
        result
            .map(Bytes::from)
            .map_err(|error| rejection(error, limits))
    }
}

fn busy() -> ApiError {
    let message = "Too many compressed bodies at once. Retry later, or send the body uncompressed.";
    ApiError::new(Code::RateLimited, message)
        .with_header(header::RETRY_AFTER, HeaderValue::from(RETRY_SECONDS))
}

fn rejection(error: GzipError, limits: GzipLimits) -> ApiError {
    match error {
        GzipError::Invalid => ApiError::new(Code::MalformedJson, "The body is not valid gzip."),
        GzipError::TooLarge => too_large(limits.bytes),
        GzipError::TooCostly => {
            let message = format!(
                "The body must have at most {} gzip members and {} blocks, and a compression ratio \
                 of at most 100. Send it as one member, or uncompressed.",
                limits.members, limits.blocks
            );
            ApiError::new(Code::PayloadTooLarge, message)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write as _;

    fn packed() -> Bytes {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(b"{}").unwrap();
        encoder.finish().unwrap().into()
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_without_a_slot_is_refused_and_may_be_retried() {
        let decompressor = BodyDecompressor::default();
        let slots = decompressor.unproven.clone();
        let taken = slots.acquire_many_owned(2).await.unwrap();
        let unproven = GzipLimits::unproven(100);
        let refused = decompressor.run(packed(), unproven).await.unwrap_err();
        assert_eq!(refused.code(), Code::RateLimited);
        let others = decompressor.run(packed(), GzipLimits::AUTHENTICATED).await;
        assert_eq!(
            others.unwrap(),
            "{}",
            "authenticated senders have other slots"
        );
        drop(taken);
        assert_eq!(decompressor.run(packed(), unproven).await.unwrap(), "{}");
    }
}
