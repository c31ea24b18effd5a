//! Counts writes on behalf of senders that could not be verified, to limit the growth of the
//! database: postbacks without a valid signature, and notifications with a wrong secret.
//!
//! Counts are kept in memory, so each node counts on its own, and a restart resets them.

use crate::metrics;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use tributary_domain::access::unverified_writes::UnverifiedWriteQuota;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::subnet::subnet;
use tributary_domain::vocabulary::time::Timestamp;

/// Maximum number of addresses to count separately. Further addresses share one count.
const ADDRESSES_MAX: usize = 65_536;

/// Counts of the current UTC day.
#[derive(Debug, Default)]
struct DayCounts {
    day: Option<Day>,
    total: u32,
    by_address: HashMap<IpAddr, u32>,
    /// Writes from addresses beyond [`ADDRESSES_MAX`].
    from_others: u32,
}

impl DayCounts {
    /// Returns the count of an address.
    fn count_of(&mut self, address: IpAddr) -> &mut u32 {
        if self.by_address.len() >= ADDRESSES_MAX && !self.by_address.contains_key(&address) {
            return &mut self.from_others;
        }
        self.by_address.entry(address).or_default()
    }
}

/// Applies the daily quotas for unverified writes.
#[derive(Debug)]
pub struct UnverifiedWrites {
    quota: UnverifiedWriteQuota,
    today: Mutex<DayCounts>,
}

impl UnverifiedWrites {
    /// Starts at zero.
    pub fn new(quota: UnverifiedWriteQuota) -> Self {
        Self {
            quota,
            today: Mutex::default(),
        }
    }

    /// Counts a write and returns whether it is within the quotas. Writes over a quota must not be
    /// stored; the metric counts them by `kind`.
    pub(crate) fn allows(&self, kind: &'static str, address: IpAddr, now: Timestamp) -> bool {
        let is_allowed = self.count(subnet(address), Day::of(now));
        if !is_allowed {
            metrics::count_dropped_write(kind);
        }
        is_allowed
    }

    fn count(&self, address: IpAddr, day: Day) -> bool {
        let mut today = self.today.lock().unwrap_or_else(PoisonError::into_inner);
        if today.day != Some(day) {
            *today = DayCounts {
                day: Some(day),
                ..DayCounts::default()
            };
        }
        // Checked before the address is added, so that refused writes use no memory.
        if !self.quota.allows(today.total, 0) {
            return false;
        }
        let total = today.total;
        let from_address = today.count_of(address);
        if !self.quota.allows(total, *from_address) {
            return false;
        }
        *from_address = from_address.saturating_add(1);
        today.total = total.saturating_add(1);
        if !self.quota.allows(today.total, 0) {
            tracing::warn!(
                per_day = self.quota.per_day,
                "limits.unverified_writes_per_day is used up; dropping further unverified \
                 postbacks and rejected notifications until midnight UTC"
            );
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Day {
        Day::parse(text).unwrap()
    }

    fn writes(per_day: u32, per_day_per_address: u32) -> UnverifiedWrites {
        UnverifiedWrites::new(UnverifiedWriteQuota {
            per_day,
            per_day_per_address,
        })
    }

    #[test]
    fn quotas_apply_per_address_and_in_total_and_reset_at_midnight() {
        let writes = writes(5, 3);
        let [one, other] = [IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2])];
        let today = day("2026-01-01");
        let allowed = |address, day| (0..10).filter(|_| writes.count(address, day)).count();
        assert_eq!(allowed(one, today), 3);
        assert_eq!(allowed(other, today), 2);
        assert_eq!(allowed(one, day("2026-01-02")), 3);
    }

    #[test]
    fn an_ipv6_prefix_counts_as_one_address() {
        let writes = writes(0, 1);
        let now = Timestamp::from_millis(0);
        let allows = |address: &str| writes.allows("postback", address.parse().unwrap(), now);
        assert!(allows("2001:db8:0:1::1"));
        assert!(!allows("2001:db8:0:1::2"));
        assert!(allows("2001:db8:0:2::1"));
    }

    #[test]
    fn memory_is_bounded() {
        let writes = writes(0, 2);
        let today = day("2026-01-01");
        let address = |number: u32| IpAddr::from(number.to_be_bytes());
        let count = u32::try_from(ADDRESSES_MAX).unwrap() + 100;
        let allowed = (0..count).filter(|number| writes.count(address(*number), today));
        assert_eq!(
            allowed.count(),
            ADDRESSES_MAX + 2,
            "the last ones share a count"
        );
        assert_eq!(writes.today.lock().unwrap().by_address.len(), ADDRESSES_MAX);
    }
}
