//! How often somebody may ask: per key, per address, and how often an address may present wrong keys.
//!
//! Buckets live in the memory of one node. They protect it from accidents and guessing, not from paying
//! customers: with several nodes each has its own.

use crate::error::{ApiError, Code};
use axum::http::{HeaderName, HeaderValue, header};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use std::hash::Hash;
use std::net::IpAddr;
use std::num::NonZeroU32;
use tributary_domain::vocabulary::id::KeyId;

/// What the operator allows; 0 is off.
#[derive(Debug, Clone, Copy)]
pub struct RateSettings {
    /// Requests a second of one key.
    pub per_key: u32,
    /// Requests a second of one address.
    pub per_address: u32,
    /// Wrong keys a minute of one address.
    pub failures_per_minute: u32,
}

/// The buckets.
#[derive(Debug)]
pub struct RateLimits {
    keys: Option<Bucket<KeyId>>,
    addresses: Option<Bucket<IpAddr>>,
    failures: Option<Bucket<IpAddr>>,
}

#[derive(Debug)]
struct Bucket<K: Hash + Eq + Clone> {
    /// What the policy is called in the headers.
    policy: &'static str,
    /// Requests per window.
    quota: u32,
    /// The window, in seconds.
    window: u32,
    limiter: DefaultKeyedRateLimiter<K>,
    clock: DefaultClock,
}

impl<K: Hash + Eq + Clone> Bucket<K> {
    fn new(policy: &'static str, quota: u32, window: u32) -> Option<Self> {
        let burst = NonZeroU32::new(quota)?;
        let per_window = if window == 1 {
            Quota::per_second(burst)
        } else {
            Quota::per_minute(burst)
        };
        let limiter = RateLimiter::keyed(per_window);
        Some(Self {
            policy,
            quota,
            window,
            limiter,
            clock: DefaultClock::default(),
        })
    }

    /// Counts one; refused ones are counted too, or a client that ignores 429 would be free.
    fn count(&self, key: &K) -> Result<(), ApiError> {
        self.limiter.check_key(key).map_err(|refused| {
            let wait = refused.wait_time_from(self.clock.now());
            // A rounded-up second: `Retry-After: 0` would be an invitation to try at once.
            let seconds = wait.as_secs().saturating_add(1);
            self.error(seconds)
        })
    }

    fn error(&self, seconds: u64) -> ApiError {
        let (policy, quota, window) = (self.policy, self.quota, self.window);
        let text = |text: String| {
            HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""))
        };
        let message = format!("Too many requests. Wait {seconds} s, then send it again.");
        ApiError::new(Code::RateLimited, message)
            .with_header(header::RETRY_AFTER, HeaderValue::from(seconds))
            .with_header(
                HeaderName::from_static("ratelimit-policy"),
                text(format!("\"{policy}\";q={quota};w={window}")),
            )
            .with_header(
                HeaderName::from_static("ratelimit"),
                text(format!("\"{policy}\";r=0;t={seconds}")),
            )
    }
}

impl RateLimits {
    /// Buckets of these sizes.
    pub fn new(settings: RateSettings) -> Self {
        Self {
            keys: Bucket::new("key", settings.per_key, 1),
            addresses: Bucket::new("address", settings.per_address, 1),
            failures: Bucket::new("failures", settings.failures_per_minute, 60),
        }
    }

    /// Counts a request of a key.
    pub(crate) fn count_key(&self, key: KeyId) -> Result<(), ApiError> {
        self.keys
            .as_ref()
            .map_or(Ok(()), |bucket| bucket.count(&key))
    }

    /// Counts a request of an address.
    pub(crate) fn count_address(&self, address: IpAddr) -> Result<(), ApiError> {
        self.addresses
            .as_ref()
            .map_or(Ok(()), |bucket| bucket.count(&subnet(address)))
    }

    /// Counts a wrong key of an address.
    pub(crate) fn count_failure(&self, address: IpAddr) -> Result<(), ApiError> {
        self.failures
            .as_ref()
            .map_or(Ok(()), |bucket| bucket.count(&subnet(address)))
    }

    /// Forgets whoever has not asked for a while. Called now and then, so that memory stays bounded.
    pub fn forget_idle(&self) {
        if let Some(bucket) = &self.keys {
            bucket.limiter.retain_recent();
        }
        for bucket in [&self.addresses, &self.failures].into_iter().flatten() {
            bucket.limiter.retain_recent();
        }
    }
}

/// One customer of a provider has a whole /64 of addresses; they count as one.
fn subnet(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => IpAddr::V4(v4),
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(per_address: u32) -> RateLimits {
        RateLimits::new(RateSettings {
            per_key: 0,
            per_address,
            failures_per_minute: 0,
        })
    }

    #[test]
    fn the_request_after_the_last_one_waits() {
        let limits = limits(3);
        let address = IpAddr::from([192, 0, 2, 1]);
        for _ in 0..3 {
            assert!(limits.count_address(address).is_ok());
        }
        assert_eq!(
            limits.count_address(address).unwrap_err().code(),
            Code::RateLimited
        );
        assert!(
            limits.count_address(IpAddr::from([192, 0, 2, 2])).is_ok(),
            "another address"
        );
    }

    #[test]
    fn zero_is_off() {
        let limits = limits(0);
        for _ in 0..10_000 {
            assert!(limits.count_address(IpAddr::from([192, 0, 2, 1])).is_ok());
        }
    }

    #[test]
    fn addresses_of_one_customer_count_as_one() {
        let limits = limits(1);
        assert!(
            limits
                .count_address("2001:db8:0:1::1".parse().unwrap())
                .is_ok()
        );
        assert!(
            limits
                .count_address("2001:db8:0:1::2".parse().unwrap())
                .is_err()
        );
        assert!(
            limits
                .count_address("2001:db8:0:2::1".parse().unwrap())
                .is_ok()
        );
        let mapped = "::ffff:192.0.2.1".parse().unwrap();
        assert!(limits.count_address(IpAddr::from([192, 0, 2, 1])).is_ok());
        assert!(
            limits.count_address(mapped).is_err(),
            "the same address, written otherwise"
        );
    }
}
