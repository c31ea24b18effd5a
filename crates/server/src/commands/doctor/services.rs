//! Checks the services that the server calls: the networks, AdServices and the exchange rate
//! sources.
//!
//! An unreachable service is a warning, because the machine may be offline on purpose. A host name
//! that resolves to a private address is an error, because the server blocks such requests; no
//! connection is made.

use super::check::DoctorCheck;
use super::rates::AREA as RATES;
use crate::config::Config;
use crate::public_address::is_public;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;
use url::{Host, Url};

const NETWORKS: &str = "networks";
const RATES_URL: &str = "rates.url";
const SECOND_RATES_URL: &str = "rates.second_url";
/// Timeout for resolving and connecting together.
const REACH_MAX: Duration = Duration::from_secs(3);
/// Addresses tried per host name.
const ADDRESSES_MAX: usize = 8;

/// Result of trying to reach a service.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reachability {
    Connected,
    /// Not connected: this address is private, which is not allowed.
    Private(IpAddr),
    /// Not connected, for this reason.
    Unreachable(String),
}

/// Checks all services concurrently.
pub(super) async fn examine(config: &Config) -> Vec<DoctorCheck> {
    let allow_private = config.networks.allow_private_addresses;
    let mut targets: Vec<(&'static str, Url, bool)> = config
        .services()
        .into_iter()
        .map(|(setting, url)| (setting, url.clone(), allow_private))
        .collect();
    // Rate files are not secret, and an operator may host a copy on a private address.
    let rates = [
        (RATES_URL, &config.rates.url),
        (SECOND_RATES_URL, &config.rates.second_url),
    ];
    for (setting, url) in rates {
        targets.extend(url.clone().map(|url| (setting, url, true)));
    }

    let mut probes = JoinSet::new();
    for (order, (setting, url, allow_private)) in targets.into_iter().enumerate() {
        probes.spawn(async move {
            let reachability = probe(&url, allow_private).await;
            (order, setting, url, reachability)
        });
    }
    let mut reached = probes.join_all().await;
    reached.sort_by_key(|(order, ..)| *order);

    let mut checks: Vec<DoctorCheck> = reached
        .into_iter()
        .map(|(_, setting, url, reachability)| match setting {
            RATES_URL | SECOND_RATES_URL => judge_rates(setting, &url, &reachability),
            _ => judge_service(setting, &url, allow_private, &reachability),
        })
        .collect();
    for (setting, url) in rates {
        if url.is_none() {
            let message = format!("nothing is fetched: {setting} is not set");
            checks.push(DoctorCheck::ok(RATES, message));
        }
    }
    checks
}

async fn probe(url: &Url, allow_private: bool) -> Reachability {
    timeout(REACH_MAX, check_reachability(url, allow_private))
        .await
        .unwrap_or_else(|_elapsed| {
            Reachability::Unreachable(format!("no response within {} s", REACH_MAX.as_secs()))
        })
}

async fn check_reachability(url: &Url, allow_private: bool) -> Reachability {
    let addresses = match resolve(url).await {
        Ok(addresses) => addresses,
        Err(error) => return Reachability::Unreachable(error),
    };
    let private = addresses
        .iter()
        .map(SocketAddr::ip)
        .find(|address| !is_public(*address));
    if let Some(address) = private.filter(|_| !allow_private) {
        return Reachability::Private(address);
    }
    connect_to_any(addresses).await
}

/// Connects to all addresses at once. Where IPv6 does not work, trying it first would use up the
/// time for IPv4.
async fn connect_to_any(addresses: Vec<SocketAddr>) -> Reachability {
    let mut attempts = JoinSet::new();
    for address in addresses.into_iter().take(ADDRESSES_MAX) {
        attempts.spawn(TcpStream::connect(address));
    }
    let mut reason = "the host name has no address".to_owned();
    while let Some(attempt) = attempts.join_next().await {
        match attempt {
            Ok(Ok(_connected)) => return Reachability::Connected,
            Ok(Err(error)) => reason = error.to_string(),
            Err(error) => reason = error.to_string(),
        }
    }
    Reachability::Unreachable(reason)
}

/// Resolves a host name on a separate thread. The system's resolver cannot be interrupted, and at
/// exit the runtime would wait for a thread in its own pool.
async fn resolve(url: &Url) -> Result<Vec<SocketAddr>, String> {
    let port = url.port_or_known_default().unwrap_or_default();
    let name = match url.host() {
        Some(Host::Domain(name)) => name.to_owned(),
        Some(Host::Ipv4(address)) => return Ok(vec![(address, port).into()]),
        Some(Host::Ipv6(address)) => return Ok(vec![(address, port).into()]),
        None => return Err("the URL has no host".to_owned()),
    };
    let (sender, receiver) = oneshot::channel();
    std::thread::Builder::new()
        .name("doctor-resolver".to_owned())
        .spawn(move || {
            let resolved = (name.as_str(), port).to_socket_addrs();
            // After a timeout the receiver is gone.
            drop(
                sender.send(
                    resolved
                        .map(Iterator::collect)
                        .map_err(|error| error.to_string()),
                ),
            );
        })
        .map_err(|error| error.to_string())?;
    receiver
        .await
        .unwrap_or_else(|_| Err("the resolver failed".to_owned()))
}

/// Returns only the host and port, because the path may contain a secret.
fn host_and_port(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    format!("{host}:{}", url.port_or_known_default().unwrap_or_default())
}

fn judge_service(
    setting: &'static str,
    url: &Url,
    allow_private: bool,
    reachability: &Reachability,
) -> DoctorCheck {
    let host_port = host_and_port(url);
    match reachability {
        Reachability::Private(address) => DoctorCheck::error(
            NETWORKS,
            format!(
                "{setting}: {host_port} resolves to the private address {address}; requests are \
                 blocked"
            ),
            "correct the host name; for a simulator, set networks.allow_private_addresses",
        ),
        Reachability::Unreachable(reason) => DoctorCheck::warning(
            NETWORKS,
            format!("{setting}: {host_port} cannot be reached: {reason}"),
            "check DNS and the firewall; deliveries are retried later",
        ),
        Reachability::Connected if url.scheme() == "http" && !allow_private => {
            DoctorCheck::warning(
                NETWORKS,
                format!(
                    "{setting}: {host_port} is reached without TLS: credentials are sent \
                     unencrypted"
                ),
                "use an https:// URL; http:// is only for a simulator",
            )
        }
        Reachability::Connected => {
            DoctorCheck::ok(NETWORKS, format!("{setting}: {host_port} can be reached"))
        }
    }
}

fn judge_rates(setting: &'static str, url: &Url, reachability: &Reachability) -> DoctorCheck {
    let host_port = host_and_port(url);
    match reachability {
        Reachability::Unreachable(reason) => DoctorCheck::warning(
            RATES,
            format!("{setting}: {host_port} cannot be reached: {reason}"),
            format!("check DNS and the firewall, or leave {setting} empty"),
        ),
        // Private addresses are allowed for rate files.
        Reachability::Connected | Reachability::Private(_) => {
            DoctorCheck::ok(RATES, format!("{setting}: {host_port} can be reached"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::CheckStatus;
    use super::*;
    use rstest::rstest;
    use std::time::Instant;

    fn private() -> Reachability {
        Reachability::Private("127.0.0.1".parse().unwrap())
    }

    fn unreachable() -> Reachability {
        Reachability::Unreachable("connection refused".to_owned())
    }

    #[rstest]
    #[case::fine("https://a.example", false, Reachability::Connected, CheckStatus::Ok)]
    #[case::offline("https://a.example", false, unreachable(), CheckStatus::Warning)]
    #[case::private("https://a.example", false, private(), CheckStatus::Error)]
    #[case::unencrypted(
        "http://a.example",
        false,
        Reachability::Connected,
        CheckStatus::Warning
    )]
    #[case::simulator(
        "http://127.0.0.1:9000",
        true,
        Reachability::Connected,
        CheckStatus::Ok
    )]
    #[case::simulator_down("http://127.0.0.1:9000", true, unreachable(), CheckStatus::Warning)]
    fn checks_services(
        #[case] url: &str,
        #[case] allow_private: bool,
        #[case] reachability: Reachability,
        #[case] expected: CheckStatus,
    ) {
        let url = Url::parse(url).unwrap();
        assert_eq!(
            judge_service("x.base_url", &url, allow_private, &reachability).status,
            expected
        );
    }

    #[rstest]
    #[case::fine(Reachability::Connected, CheckStatus::Ok)]
    #[case::offline(unreachable(), CheckStatus::Warning)]
    fn checks_rate_sources_without_showing_the_path(
        #[case] reachability: Reachability,
        #[case] expected: CheckStatus,
    ) {
        let url = Url::parse("https://rates.example/daily.xml?token=canary").unwrap();
        let check = judge_rates(RATES_URL, &url, &reachability);
        assert_eq!(check.status, expected);
        assert!(check.message.contains("rates.example:443"), "{check:?}");
        assert!(!check.message.contains("canary"), "{check:?}");
    }

    #[tokio::test]
    async fn reaches_a_listening_service() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        assert_eq!(probe(&url, true).await, Reachability::Connected);
    }

    #[tokio::test]
    async fn one_reachable_address_is_enough() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let closed = "127.0.0.1:1".parse().unwrap();
        let addresses = vec![closed, listener.local_addr().unwrap()];
        assert_eq!(connect_to_any(addresses).await, Reachability::Connected);
        assert!(matches!(
            connect_to_any(vec![closed]).await,
            Reachability::Unreachable(_)
        ));
        assert!(matches!(
            connect_to_any(Vec::new()).await,
            Reachability::Unreachable(_)
        ));
    }

    #[tokio::test]
    async fn private_addresses_are_not_connected_to_unless_allowed() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        for host in ["127.0.0.1", "localhost"] {
            let url = Url::parse(&format!("http://{host}:{port}")).unwrap();
            assert!(
                matches!(probe(&url, false).await, Reachability::Private(_)),
                "{host}"
            );
        }
        let connection = timeout(Duration::from_millis(50), listener.accept()).await;
        assert!(connection.is_err(), "a connection was made");
    }

    #[tokio::test]
    async fn an_unknown_host_is_unreachable_within_the_timeout() {
        let started = Instant::now();
        let url = Url::parse("https://unknown.invalid").unwrap();
        assert!(matches!(
            probe(&url, false).await,
            Reachability::Unreachable(_)
        ));
        assert!(started.elapsed() < REACH_MAX + Duration::from_secs(1));
    }
}
