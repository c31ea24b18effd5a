//! DNS resolver that checks each address before a connection is made.

use super::{AddressPolicy, OutboundError, check_address};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::SocketAddr;

/// Addresses tried per host name.
const ADDRESSES_MAX: usize = 8;

/// Uses the system's resolver. If any address of a host name is private, the whole name is
/// rejected.
#[derive(Debug, Clone, Copy)]
pub(super) struct CheckedResolver {
    pub(super) policy: AddressPolicy,
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = self.policy;
        Box::pin(async move {
            // The port is filled in from the URL.
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let addresses: Vec<SocketAddr> = found.take(ADDRESSES_MAX).collect();
            let checked: Result<(), OutboundError> = addresses
                .iter()
                .try_for_each(|address| check_address(policy, address.ip()));
            checked?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}
