//! Daily quotas for writes on behalf of senders that could not be verified.

/// Daily quotas; 0 disables a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnverifiedWriteQuota {
    /// Writes per day from all addresses together. Limits the growth of the database.
    pub per_day: u32,
    /// Writes per day from one address, so that one sender cannot use the whole quota.
    pub per_day_per_address: u32,
}

impl UnverifiedWriteQuota {
    /// No quotas.
    pub const UNLIMITED: Self = Self {
        per_day: 0,
        per_day_per_address: 0,
    };

    /// Returns whether another write is allowed after today's writes in total and from the address.
    pub const fn allows(&self, total: u32, from_address: u32) -> bool {
        (self.per_day == 0 || total < self.per_day)
            && (self.per_day_per_address == 0 || from_address < self.per_day_per_address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::first(10, 3, 0, 0, true)]
    #[case::last_of_the_address(10, 3, 2, 2, true)]
    #[case::address_used_up(10, 3, 3, 3, false)]
    #[case::another_address(10, 3, 9, 0, true)]
    #[case::total_used_up(10, 3, 10, 0, false)]
    #[case::no_total(0, 3, u32::MAX, 2, true)]
    #[case::no_total_and_address_used_up(0, 3, 3, 3, false)]
    #[case::no_quota_per_address(10, 0, 9, 9, true)]
    #[case::unlimited(0, 0, u32::MAX, u32::MAX, true)]
    fn quotas(
        #[case] per_day: u32,
        #[case] per_day_per_address: u32,
        #[case] total: u32,
        #[case] from_address: u32,
        #[case] expected: bool,
    ) {
        let quota = UnverifiedWriteQuota {
            per_day,
            per_day_per_address,
        };
        assert_eq!(quota.allows(total, from_address), expected);
    }
}
