//! Rate limits per key and per address, and a limit on failed authentications per address.
//!
//! Buckets are kept in memory, so each node counts on its own. The limits protect a node from
//! runaway clients and from attempts to guess keys.

use crate::error::{ApiError, Code};
use crate::rejection_log::RejectionLog;
use axum::http::{HeaderName, HeaderValue, header};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tributary_domain::access::Environment;
use tributary_domain::vocabulary::id::{AppId, KeyId};
use tributary_domain::vocabulary::subnet::subnet;

/// Number of shards per set of buckets, each with its own lock, to reduce contention.
const SHARDS: usize = 16;
/// Number of callers per shard above which idle callers are evicted during a request.
const CALLERS_PER_SHARD_MAX: usize = 65_536;

/// Configured limits; 0 disables a limit.
#[derive(Debug, Clone, Copy)]
pub struct RateSettings {
    /// Requests per second with one key.
    pub per_key: u32,
    /// Requests per second from one address.
    pub per_address: u32,
    /// Failed authentications per minute from one address.
    pub failures_per_minute: u32,
}

/// The API key that a request is counted for. All requests with the same key share a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum RateLimitKey {
    /// A private key.
    Private(KeyId),
    /// An SDK key, shared by all devices that use the app.
    Sdk(AppId, Environment),
}

/// Rate limit buckets.
#[derive(Debug)]
pub struct RateLimits {
    keys: Option<Bucket<RateLimitKey>>,
    addresses: Option<Bucket<IpAddr>>,
    failures: Option<Bucket<IpAddr>>,
    rejections: RejectionLog,
}

/// A leaky bucket per caller, stored as the time at which the bucket is empty again. Each request
/// moves that time forward by one interval. A request is refused if that time would be more than
/// one window ahead.
#[derive(Debug)]
struct Bucket<K> {
    /// Policy name in the rate limit headers.
    policy: &'static str,
    /// Requests per window.
    quota: u32,
    window: Duration,
    /// How far one request moves the time at which the bucket is empty.
    interval: Duration,
    hasher: RandomState,
    shards: Vec<Mutex<HashMap<K, Instant>>>,
}

impl<K: Hash + Eq> Bucket<K> {
    fn new(policy: &'static str, quota: u32, window: Duration) -> Option<Self> {
        let interval = window.checked_div(quota)?;
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Some(Self {
            policy,
            quota,
            window,
            interval,
            hasher: RandomState::new(),
            shards,
        })
    }

    /// Counts a request, or refuses it with 429. Refused requests count as well, up to one window,
    /// so a client that ignores 429 stays blocked.
    fn count(&self, key: K, now: Instant) -> Result<(), ApiError> {
        let shard = usize::try_from(self.hasher.hash_one(&key) % SHARDS as u64).unwrap_or(0);
        let mut callers = self.shards[shard]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if callers.len() >= CALLERS_PER_SHARD_MAX {
            callers.retain(|_, empty_at| *empty_at > now);
        }
        let empty_at = callers.entry(key).or_insert(now);
        let next = (*empty_at).max(now) + self.interval;
        if next <= now + self.window {
            *empty_at = next;
            return Ok(());
        }
        // Never earlier, because another thread may have counted with a later time.
        *empty_at = (*empty_at).max(next.min(now + self.window * 2));
        // A request at that time fits: it may move the time by one interval.
        let wait = (*empty_at + self.interval).saturating_duration_since(now + self.window);
        // Rounded up, because `Retry-After: 0` would invite an immediate retry.
        Err(self.error(wait.as_secs().saturating_add(1)))
    }

    fn error(&self, seconds: u64) -> ApiError {
        let (policy, quota, window) = (self.policy, self.quota, self.window.as_secs());
        let text = |text: String| {
            HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""))
        };
        let message = format!("Too many requests. Retry after {seconds} seconds.");
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

    fn forget_idle(&self, now: Instant) {
        for shard in &self.shards {
            let mut callers = shard.lock().unwrap_or_else(PoisonError::into_inner);
            callers.retain(|_, empty_at| *empty_at > now);
        }
    }
}

impl RateLimits {
    /// Creates the buckets with the configured sizes.
    pub fn new(settings: RateSettings) -> Self {
        let (second, minute) = (Duration::from_secs(1), Duration::from_mins(1));
        Self {
            keys: Bucket::new("key", settings.per_key, second),
            addresses: Bucket::new("address", settings.per_address, second),
            failures: Bucket::new("failures", settings.failures_per_minute, minute),
            rejections: RejectionLog::default(),
        }
    }

    /// Counts a request made with a private key.
    pub(crate) fn count_key(&self, key: KeyId, now: Instant) -> Result<(), ApiError> {
        self.count(RateLimitKey::Private(key), now)
    }

    /// Counts a request made with an app's SDK key.
    pub(crate) fn count_sdk_key(
        &self,
        app: AppId,
        environment: Environment,
        now: Instant,
    ) -> Result<(), ApiError> {
        self.count(RateLimitKey::Sdk(app, environment), now)
    }

    fn count(&self, key: RateLimitKey, now: Instant) -> Result<(), ApiError> {
        let count = |bucket: &Bucket<RateLimitKey>| bucket.count(key, now);
        self.keys.as_ref().map_or(Ok(()), count)
    }

    /// Counts a request from an address.
    pub(crate) fn count_address(&self, address: IpAddr, now: Instant) -> Result<(), ApiError> {
        let count = |bucket: &Bucket<IpAddr>| bucket.count(subnet(address), now);
        self.addresses.as_ref().map_or(Ok(()), count)
    }

    /// Counts and logs a failed authentication from an address.
    pub(crate) fn count_failure(&self, address: IpAddr) -> Result<(), ApiError> {
        let now = Instant::now();
        self.rejections.note(now);
        let count = |bucket: &Bucket<IpAddr>| bucket.count(subnet(address), now);
        self.failures.as_ref().map_or(Ok(()), count)
    }

    /// Removes idle callers. Called periodically to limit memory use.
    pub fn forget_idle(&self) {
        let now = Instant::now();
        if let Some(bucket) = &self.keys {
            bucket.forget_idle(now);
        }
        for bucket in [&self.addresses, &self.failures].into_iter().flatten() {
            bucket.forget_idle(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::response::IntoResponse as _;

    const SECOND: Duration = Duration::from_secs(1);

    fn limits(per_address: u32) -> RateLimits {
        RateLimits::new(RateSettings {
            per_key: 0,
            per_address,
            failures_per_minute: 0,
        })
    }

    fn count(limits: &RateLimits, address: &str) -> Result<(), ApiError> {
        limits.count_address(address.parse().unwrap(), Instant::now())
    }

    #[test]
    fn a_request_over_the_quota_succeeds_after_the_window() {
        let bucket = Bucket::new("key", 3, SECOND).unwrap();
        let now = Instant::now();
        for _ in 0..3 {
            assert!(bucket.count("a", now).is_ok());
        }
        let refused = bucket.count("a", now).unwrap_err();
        assert_eq!(refused.code(), Code::RateLimited);
        assert!(bucket.count("b", now).is_ok(), "another caller");
        assert!(bucket.count("a", now + SECOND).is_ok());
    }

    #[test]
    fn a_request_after_the_requested_wait_succeeds() {
        for (quota, window, refused) in [1, 2, 3, 20, 1_000]
            .into_iter()
            .flat_map(|quota| [(quota, SECOND), (quota, SECOND * 60)])
            .flat_map(|(quota, window)| [1, 2, 50].map(|refused| (quota, window, refused)))
        {
            let bucket = Bucket::new("key", quota, window).unwrap();
            let begun = Instant::now();
            for _ in 0..quota {
                assert!(bucket.count("a", begun).is_ok());
            }
            let refusals = (0..refused).map(|_| bucket.count("a", begun).unwrap_err());
            let last = refusals.reduce(|_, last| last).unwrap().into_response();
            let seconds = last.headers()[header::RETRY_AFTER].to_str().unwrap();
            let wait = Duration::from_secs(seconds.parse().unwrap());
            assert!(wait <= window * 2 + SECOND, "{quota}: {wait:?}");
            let repeated = bucket.count("a", begun + wait);
            assert!(
                repeated.is_ok(),
                "{quota} per {window:?}, {refused}: {wait:?}"
            );
        }
    }

    #[test]
    fn a_client_that_ignores_429_stays_blocked() {
        let bucket = Bucket::new("key", 20, SECOND).unwrap();
        let begun = Instant::now();
        let millis = |millis| begun + Duration::from_millis(millis);
        let accepted = |from: u64, to: u64| {
            (from..to)
                .filter(|at| bucket.count("a", millis(*at)).is_ok())
                .count()
        };
        assert_eq!(
            accepted(0, 1_000),
            20,
            "1000 requests per second, 20 allowed"
        );
        assert_eq!(accepted(1_000, 10_000), 0);
        assert!(
            bucket.count("a", millis(11_500)).is_ok(),
            "accepted again after a pause"
        );
    }

    #[test]
    fn a_request_with_an_earlier_time_does_not_empty_the_bucket() {
        let bucket = Bucket::new("key", 20, SECOND).unwrap();
        let begun = Instant::now();
        let now = begun + SECOND * 10;
        for _ in 0..40 {
            let _counted = bucket.count("a", now);
        }
        assert!(bucket.count("a", begun).is_err());
        assert!(bucket.count("a", now).is_err(), "still blocked");
    }

    #[test]
    fn zero_disables_a_limit() {
        let limits = limits(0);
        for _ in 0..10_000 {
            assert!(count(&limits, "192.0.2.1").is_ok());
        }
    }

    #[test]
    fn addresses_of_one_ipv6_prefix_count_as_one() {
        let limits = limits(1);
        assert!(count(&limits, "2001:db8:0:1::1").is_ok());
        assert!(count(&limits, "2001:db8:0:1::2").is_err());
        assert!(count(&limits, "2001:db8:0:2::1").is_ok());
        assert!(count(&limits, "192.0.2.1").is_ok());
        assert!(
            count(&limits, "::ffff:192.0.2.1").is_err(),
            "the same address in another notation"
        );
    }

    #[test]
    fn idle_callers_are_removed() {
        let bucket = Bucket::new("key", 3, SECOND).unwrap();
        let now = Instant::now();
        for caller in 0..1_000 {
            assert!(bucket.count(caller, now).is_ok());
        }
        let remembered = || {
            bucket
                .shards
                .iter()
                .map(|shard| shard.lock().unwrap().len())
                .sum::<usize>()
        };
        assert_eq!(remembered(), 1_000);
        bucket.forget_idle(now + SECOND);
        assert_eq!(remembered(), 0);
    }
}
