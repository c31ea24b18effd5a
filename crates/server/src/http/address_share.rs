//! Counts connections by address, so that one client cannot use all of them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tributary_domain::vocabulary::subnet::subnet;

/// Open connections by address; IPv6 addresses count by /64 network.
#[derive(Debug, Clone)]
pub(super) struct AddressConnections {
    /// 0 is unlimited.
    max: usize,
    open: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl AddressConnections {
    /// Starts without connections.
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            open: Arc::default(),
        }
    }

    /// Counts a connection until the returned value is dropped. Returns `None` if the address has
    /// too many.
    pub(super) fn take(&self, address: IpAddr) -> Option<AddressShare> {
        let network = subnet(address);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(network).or_default();
        if self.max > 0 && *count >= self.max {
            return None;
        }
        *count += 1;
        drop(open);
        Some(AddressShare {
            network,
            connections: self.clone(),
        })
    }
}

/// One connection of an address.
#[derive(Debug)]
pub(super) struct AddressShare {
    network: IpAddr,
    connections: AddressConnections,
}

impl Drop for AddressShare {
    fn drop(&mut self) {
        let open = &self.connections.open;
        let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.network) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_has_a_limited_number_of_connections() {
        let connections = AddressConnections::new(2);
        let first = connections.take(address("192.0.2.1")).unwrap();
        let _second = connections.take(address("::ffff:192.0.2.1")).unwrap();
        assert!(connections.take(address("192.0.2.1")).is_none());
        assert!(connections.take(address("192.0.2.2")).is_some());
        drop(first);
        assert!(connections.take(address("192.0.2.1")).is_some());
    }

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        let connections = AddressConnections::new(1);
        let _first = connections.take(address("2001:db8:0:1::1")).unwrap();
        assert!(connections.take(address("2001:db8:0:1::2")).is_none());
        assert!(connections.take(address("2001:db8:0:2::1")).is_some());
    }

    #[test]
    fn zero_is_unlimited_and_closed_connections_are_forgotten() {
        let connections = AddressConnections::new(0);
        let open: Vec<_> = (0..100)
            .map(|_| connections.take(address("192.0.2.1")).unwrap())
            .collect();
        drop(open);
        assert!(connections.open.lock().unwrap().is_empty());
    }
}
