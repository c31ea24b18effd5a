//! Registered accounts and their rate limits.

use crate::accounts::{
    AdsAccount, MetaPixelAccount, OpenAiPixelAccount, SimulatedAccount, TikTokPixelAccount,
};
use crate::clock::SECOND;
use crate::network::SimulatedNetwork;
use std::collections::HashMap;

/// Maximum number of accounts per network.
const ACCOUNTS_MAX: usize = 10_000;
/// Credentials with this prefix are always rejected, even in open mode.
const BAD: &str = "bad";

#[derive(Debug, Default)]
pub(crate) struct Registry {
    pub(crate) a: HashMap<String, MetaPixelAccount>,
    pub(crate) b: HashMap<String, AdsAccount>,
    pub(crate) c: HashMap<String, TikTokPixelAccount>,
    pub(crate) d: HashMap<String, OpenAiPixelAccount>,
    buckets: HashMap<(SimulatedNetwork, String), Bucket>,
}

/// Number of requests in one second.
#[derive(Debug, Default)]
struct Bucket {
    second: i64,
    used: u32,
}

impl Registry {
    /// Registers an account, replacing any account with the same id.
    pub(crate) fn register(&mut self, account: SimulatedAccount) -> Result<(), &'static str> {
        let size = self
            .a
            .len()
            .max(self.b.len())
            .max(self.c.len())
            .max(self.d.len());
        if size >= ACCOUNTS_MAX {
            return Err("too many accounts; reset the simulator");
        }
        let id = match &account {
            SimulatedAccount::NetworkA(one) => &one.pixel_id,
            SimulatedAccount::NetworkB(one) => &one.operating_account_id,
            SimulatedAccount::NetworkC(one) => &one.pixel_code,
            SimulatedAccount::NetworkD(one) => &one.pixel_id,
        };
        if id.is_empty() {
            return Err("the account id must not be empty");
        }
        let id = id.clone();
        match account {
            SimulatedAccount::NetworkA(one) => drop(self.a.insert(id, one)),
            SimulatedAccount::NetworkB(one) => drop(self.b.insert(id, one)),
            SimulatedAccount::NetworkC(one) => drop(self.c.insert(id, one)),
            SimulatedAccount::NetworkD(one) => drop(self.d.insert(id, one)),
        }
        Ok(())
    }

    /// Counts a request and returns the account's usage of its rate limit in percent; 0 if
    /// unlimited, above 100 if exceeded.
    pub(crate) fn rate_usage_percent(
        &mut self,
        network: SimulatedNetwork,
        account: &str,
        now: i64,
    ) -> u32 {
        let limit = match network {
            SimulatedNetwork::NetworkA => {
                self.a.get(account).and_then(|one| one.requests_per_second)
            }
            SimulatedNetwork::NetworkB => {
                self.b.get(account).and_then(|one| one.requests_per_second)
            }
            SimulatedNetwork::NetworkC => {
                self.c.get(account).and_then(|one| one.requests_per_second)
            }
            SimulatedNetwork::NetworkD => {
                self.d.get(account).and_then(|one| one.requests_per_second)
            }
        };
        let Some(limit) = limit else {
            return 0;
        };
        let bucket = self
            .buckets
            .entry((network, account.to_owned()))
            .or_default();
        let second = now.div_euclid(SECOND);
        if bucket.second != second {
            *bucket = Bucket { second, used: 0 };
        }
        bucket.used = bucket.used.saturating_add(1);
        // A limit of zero is always exceeded.
        bucket.used.saturating_mul(100) / limit.max(1) + u32::from(limit == 0) * 100
    }
}

/// Returns whether a credential matches the registered credential or, if none is registered, is
/// well formed.
pub(crate) fn is_valid_credential(given: &str, registered: Option<&str>) -> bool {
    if let Some(registered) = registered {
        return given == registered;
    }
    let is_text = given.bytes().all(|byte| byte.is_ascii_graphic());
    !given.is_empty() && is_text && !given.starts_with(BAD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("T", None, true)]
    #[case("badT", None, false)]
    #[case("", None, false)]
    #[case("a b", None, false)]
    #[case("T", Some("T"), true)]
    #[case("U", Some("T"), false)]
    #[case("badT", Some("badT"), true)]
    fn accepts_registered_or_well_formed_credentials(
        #[case] given: &str,
        #[case] registered: Option<&str>,
        #[case] is_good: bool,
    ) {
        assert_eq!(is_valid_credential(given, registered), is_good);
    }

    #[test]
    fn counts_limited_requests_per_second() {
        let mut registry = Registry::default();
        let account = SimulatedAccount::NetworkC(TikTokPixelAccount {
            pixel_code: "P".to_owned(),
            requests_per_second: Some(2),
            ..TikTokPixelAccount::default()
        });
        registry.register(account).expect("registered");
        let mut at =
            |account, now| registry.rate_usage_percent(SimulatedNetwork::NetworkC, account, now);
        assert_eq!([at("P", 0), at("P", 1), at("P", 999)], [50, 100, 150]);
        assert_eq!([at("P", 1_000), at("Q", 0), at("Q", 0)], [50, 0, 0]);
    }
}
