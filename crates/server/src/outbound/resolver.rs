//! Names into addresses, each looked at before anybody connects to it.

use super::{AddressPolicy, OutboundError, check_address};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::SocketAddr;

/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 8;

/// Asks the system's resolver. A name of which a single address is private is refused as a whole: it is
/// not the name that somebody meant.
#[derive(Debug, Clone, Copy)]
pub(super) struct CheckedResolver {
    pub(super) policy: AddressPolicy,
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.policy;
        Box::pin(async move {
            // The port is filled in from the URL.
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let addresses: Vec<SocketAddr> = found.take(ADDRESSES_MAX).collect();
            let checked: Result<(), OutboundError> = addresses
                .iter()
                .try_for_each(|address| check_address(reach, address.ip()));
            checked?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}
