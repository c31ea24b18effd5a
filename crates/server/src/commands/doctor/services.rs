//! The services that the server calls: the networks, `AdServices`, the exchange rates.
//!
//! A service that cannot be reached is doubtful, not broken: the machine may be meant to be offline. One
//! whose name leads into a private network is broken, because requests to it are refused. It is not even
//! connected to here.

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
/// Resolving and connecting together.
const REACH_MAX: Duration = Duration::from_secs(3);
/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 8;

/// How far we got with one service.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reachability {
    Connected,
    /// Not connected to: this address is private, and those are not allowed.
    Private(IpAddr),
    /// What stood in the way.
    Unreachable(String),
}

/// Looks at all services at the same time.
pub(super) async fn examine(config: &Config) -> Vec<DoctorCheck> {
    let allow_private = config.networks.allow_private_addresses;
    let mut targets: Vec<(&'static str, Url, bool)> = config
        .services()
        .into_iter()
        .map(|(setting, url)| (setting, url.clone(), allow_private))
        .collect();
    // The rates hold no secret, and an operator may well keep a copy of the file at home.
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
            let reach = probe(&url, allow_private).await;
            (order, setting, url, reach)
        });
    }
    let mut reached = probes.join_all().await;
    reached.sort_by_key(|(order, ..)| *order);

    let mut checks: Vec<DoctorCheck> = reached
        .into_iter()
        .map(|(_, setting, url, reach)| match setting {
            RATES_URL | SECOND_RATES_URL => judge_rates(setting, &url, &reach),
            _ => judge_service(setting, &url, allow_private, &reach),
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
    timeout(REACH_MAX, reach(url, allow_private))
        .await
        .unwrap_or_else(|_elapsed| {
            Reachability::Unreachable(format!("no answer within {} s", REACH_MAX.as_secs()))
        })
}

async fn reach(url: &Url, allow_private: bool) -> Reachability {
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

/// All at the same time: where IPv6 leads nowhere, waiting for it would use up the time for IPv4.
async fn connect_to_any(addresses: Vec<SocketAddr>) -> Reachability {
    let mut attempts = JoinSet::new();
    for address in addresses.into_iter().take(ADDRESSES_MAX) {
        attempts.spawn(TcpStream::connect(address));
    }
    let mut obstacle = "the name has no address".to_owned();
    while let Some(attempt) = attempts.join_next().await {
        match attempt {
            Ok(Ok(_connected)) => return Reachability::Connected,
            Ok(Err(error)) => obstacle = error.to_string(),
            Err(error) => obstacle = error.to_string(),
        }
    }
    Reachability::Unreachable(obstacle)
}

/// Asks the system's resolver, on a thread of its own: it cannot be interrupted, and the runtime would
/// wait for a thread of its own pool before the program can end.
async fn resolve(url: &Url) -> Result<Vec<SocketAddr>, String> {
    let port = url.port_or_known_default().unwrap_or_default();
    let name = match url.host() {
        Some(Host::Domain(name)) => name.to_owned(),
        Some(Host::Ipv4(address)) => return Ok(vec![(address, port).into()]),
        Some(Host::Ipv6(address)) => return Ok(vec![(address, port).into()]),
        None => return Err("there is no host".to_owned()),
    };
    let (sender, receiver) = oneshot::channel();
    std::thread::Builder::new()
        .name("doctor-resolver".to_owned())
        .spawn(move || {
            let resolved = (name.as_str(), port).to_socket_addrs();
            // Nobody waits any more when it took too long.
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
        .unwrap_or_else(|_| Err("the resolver gave up".to_owned()))
}

/// Host and port; the path may be somebody's secret.
fn host_and_port(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    format!("{host}:{}", url.port_or_known_default().unwrap_or_default())
}

fn judge_service(
    setting: &'static str,
    url: &Url,
    allow_private: bool,
    reach: &Reachability,
) -> DoctorCheck {
    let place = host_and_port(url);
    match reach {
        Reachability::Private(address) => DoctorCheck::error(
            NETWORKS,
            format!("{setting}: {place} is the private address {address}; requests are refused"),
            "correct the name; for a simulator set networks.allow_private_addresses",
        ),
        Reachability::Unreachable(obstacle) => DoctorCheck::warning(
            NETWORKS,
            format!("{setting}: {place} cannot be reached: {obstacle}"),
            "check name resolution and the firewall; what is to be sent there waits",
        ),
        Reachability::Connected if url.scheme() == "http" && !allow_private => {
            DoctorCheck::warning(
                NETWORKS,
                format!(
                    "{setting}: {place} is reached without TLS: credentials travel in the clear"
                ),
                "use an https:// URL; http:// is for a simulator",
            )
        }
        Reachability::Connected => {
            DoctorCheck::ok(NETWORKS, format!("{setting}: {place} can be reached"))
        }
    }
}

fn judge_rates(setting: &'static str, url: &Url, reach: &Reachability) -> DoctorCheck {
    let place = host_and_port(url);
    match reach {
        Reachability::Unreachable(obstacle) => DoctorCheck::warning(
            RATES,
            format!("{setting}: {place} cannot be reached: {obstacle}"),
            format!("check name resolution and the firewall, or leave {setting} empty"),
        ),
        // A private address is as good as any other here, so it is never refused.
        Reachability::Connected | Reachability::Private(_) => {
            DoctorCheck::ok(RATES, format!("{setting}: {place} can be reached"))
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
    #[case::in_the_clear(
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
    fn services(
        #[case] url: &str,
        #[case] allow_private: bool,
        #[case] reach: Reachability,
        #[case] expected: CheckStatus,
    ) {
        let url = Url::parse(url).unwrap();
        assert_eq!(
            judge_service("x.base_url", &url, allow_private, &reach).status,
            expected
        );
    }

    #[rstest]
    #[case::fine(Reachability::Connected, CheckStatus::Ok)]
    #[case::offline(unreachable(), CheckStatus::Warning)]
    fn rates(#[case] reach: Reachability, #[case] expected: CheckStatus) {
        let url = Url::parse("https://rates.example/daily.xml?token=canary").unwrap();
        let check = judge_rates(RATES_URL, &url, &reach);
        assert_eq!(check.status, expected);
        assert!(check.message.contains("rates.example:443"), "{check:?}");
        assert!(!check.message.contains("canary"), "{check:?}");
    }

    #[tokio::test]
    async fn a_service_that_listens_is_reached() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        assert_eq!(probe(&url, true).await, Reachability::Connected);
    }

    #[tokio::test]
    async fn one_address_that_answers_is_enough() {
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
    async fn nothing_private_is_connected_to_unless_allowed() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        for host in ["127.0.0.1", "localhost"] {
            let url = Url::parse(&format!("http://{host}:{port}")).unwrap();
            assert!(
                matches!(probe(&url, false).await, Reachability::Private(_)),
                "{host}"
            );
        }
        let nobody = timeout(Duration::from_millis(50), listener.accept()).await;
        assert!(nobody.is_err(), "somebody connected");
    }

    #[tokio::test]
    async fn a_name_that_nobody_has_is_unreachable_in_time() {
        let started = Instant::now();
        let url = Url::parse("https://nobody.invalid").unwrap();
        assert!(matches!(
            probe(&url, false).await,
            Reachability::Unreachable(_)
        ));
        assert!(started.elapsed() < REACH_MAX + Duration::from_secs(1));
    }
}
