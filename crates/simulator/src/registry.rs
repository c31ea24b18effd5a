//! The accounts that were registered, and how fast each may ask.

use crate::accounts::{
    AdsAccount, MetaPixelAccount, OpenAiPixelAccount, SimulatedAccount, TikTokPixelAccount,
};
use crate::clock::SECOND;
use crate::network::SimulatedNetwork;
use std::collections::HashMap;

/// Accounts per network.
const ACCOUNTS_MAX: usize = 10_000;
/// A credential that begins so is wrong even where everything is accepted.
const BAD: &str = "bad";

#[derive(Debug, Default)]
pub(crate) struct Registry {
    pub(crate) a: HashMap<String, MetaPixelAccount>,
    pub(crate) b: HashMap<String, AdsAccount>,
    pub(crate) c: HashMap<String, TikTokPixelAccount>,
    pub(crate) d: HashMap<String, OpenAiPixelAccount>,
    buckets: HashMap<(SimulatedNetwork, String), Bucket>,
}

/// The requests of one second.
#[derive(Debug, Default)]
struct Bucket {
    second: i64,
    used: u32,
}

impl Registry {
    /// Registers an account, in place of one with the same id.
    pub(crate) fn register(&mut self, account: SimulatedAccount) -> Result<(), &'static str> {
        let size = self
            .a
            .len()
            .max(self.b.len())
            .max(self.c.len())
            .max(self.d.len());
        if size >= ACCOUNTS_MAX {
            return Err("there are too many accounts; reset the simulator");
        }
        let id = match &account {
            SimulatedAccount::NetworkA(one) => &one.pixel_id,
            SimulatedAccount::NetworkB(one) => &one.operating_account_id,
            SimulatedAccount::NetworkC(one) => &one.pixel_code,
            SimulatedAccount::NetworkD(one) => &one.pixel_id,
        };
        if id.is_empty() {
            return Err("the account's id must not be empty");
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

    /// How much of its second an account has used with this request, in percent; 0 where nothing is limited.
    /// More than 100 is too much.
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
        // With a limit of zero, everything is too much.
        bucket.used.saturating_mul(100) / limit.max(1) + u32::from(limit == 0) * 100
    }
}

/// Whether a credential is good: the registered one or, where none is, one that is well formed.
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
    fn a_credential_is_the_registered_one_or_well_formed(
        #[case] given: &str,
        #[case] registered: Option<&str>,
        #[case] is_good: bool,
    ) {
        assert_eq!(is_valid_credential(given, registered), is_good);
    }

    #[test]
    fn the_rate_is_counted_by_the_second_and_only_where_it_is_limited() {
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
