//! Opens connections, and watches the server's notices on them.

use crate::database_error::DatabaseError;
use deadpool_postgres::Connect;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_postgres::config::{Host, LoadBalanceHosts};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Error, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Opens connections for the pool.
pub(crate) struct Connector {
    pub(crate) tls: MakeRustlsConnect,
    /// How long connecting may take.
    pub(crate) wait_max: Duration,
    /// Number of commits that the server confirmed although its synchronous standby had not.
    pub(crate) unreplicated: Arc<AtomicU64>,
}

type Connecting<'a> =
    Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + 'a>>;

impl Connect for Connector {
    fn connect(&self, config: &Config) -> Connecting<'_> {
        let config = config.clone();
        Box::pin(async move {
            let connected = connect(&config, &self.tls, self.wait_max).await;
            let (client, mut connection) = connected?;
            let unreplicated = self.unreplicated.clone();
            let task = tokio::spawn(async move {
                loop {
                    match std::future::poll_fn(|context| connection.poll_message(context)).await {
                        Some(Ok(AsyncMessage::Notice(notice))) => {
                            // The server confirms a commit even if its wait for the standby was
                            // cancelled, and sends this notice just before. The message is
                            // localised; the routine name is not.
                            if notice.routine() == Some("SyncRepWaitForLSN") {
                                unreplicated.fetch_add(1, Ordering::SeqCst);
                            }
                            tracing::debug!(
                                severity = notice.severity(),
                                message = notice.message(),
                                "notice from the database"
                            );
                        }
                        Some(Ok(_)) => {}
                        Some(Err(error)) => {
                            let error = DatabaseError::from(&error);
                            tracing::warn!(%error, "lost a database connection");
                            break;
                        }
                        None => break,
                    }
                }
            });
            Ok((client, task))
        })
    }
}

type Connected = (
    Client,
    Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>,
);

/// Connects to the first host that accepts, in the order of the URL.
///
/// Each host but the last has an equal share of the time. The library limits only the time for the
/// TCP connection, so a server that is frozen or hangs would keep it from the next host, which may
/// be the new primary.
pub(crate) async fn connect(
    config: &Config,
    tls: &MakeRustlsConnect,
    wait_max: Duration,
) -> Result<Connected, Error> {
    let mut hosts = single_hosts(config);
    let last = hosts.pop().unwrap_or_else(|| config.clone());
    let share = wait_max / u32::try_from(hosts.len() + 1).unwrap_or(u32::MAX);
    for host in hosts {
        match tokio::time::timeout(share, host.connect(tls.clone())).await {
            Ok(Ok(connected)) => return Ok(connected),
            Ok(Err(error)) => {
                let error = DatabaseError::from(&error);
                tracing::debug!(%error, "trying the next host of the database");
            }
            Err(_) => tracing::debug!("no response; trying the next host of the database"),
        }
    }
    last.connect(tls.clone()).await
}

/// Returns the configuration for each host, in the order to try them. The library can add hosts to a
/// configuration, but not remove them.
fn single_hosts(config: &Config) -> Vec<Config> {
    let (names, addresses) = (config.get_hosts().len(), config.get_hostaddrs().len());
    let count = names.max(addresses);
    let ports = config.get_ports().len();
    let is_one_each = |given: usize| given == 0 || given == count;
    if !is_one_each(names) || !is_one_each(addresses) || (ports > 1 && ports != count) {
        // The library reports the mistake.
        return vec![config.clone()];
    }
    let mut hosts: Vec<Config> = (0..count).map(|index| single_host(config, index)).collect();
    if config.get_load_balance_hosts() == LoadBalanceHosts::Random {
        // The keys of `RandomState` differ every time.
        hosts.sort_by_cached_key(|_| RandomState::new().hash_one(()));
    }
    hosts
}

fn single_host(config: &Config, index: usize) -> Config {
    let mut single = Config::new();
    if let Some(user) = config.get_user() {
        single.user(user);
    }
    if let Some(password) = config.get_password() {
        single.password(password);
    }
    if let Some(name) = config.get_dbname() {
        single.dbname(name);
    }
    if let Some(options) = config.get_options() {
        single.options(options);
    }
    if let Some(name) = config.get_application_name() {
        single.application_name(name);
    }
    if let Some(timeout) = config.get_connect_timeout() {
        single.connect_timeout(*timeout);
    }
    if let Some(timeout) = config.get_tcp_user_timeout() {
        single.tcp_user_timeout(*timeout);
    }
    if let Some(interval) = config.get_keepalives_interval() {
        single.keepalives_interval(interval);
    }
    if let Some(retries) = config.get_keepalives_retries() {
        single.keepalives_retries(retries);
    }
    single
        .ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .target_session_attrs(config.get_target_session_attrs())
        .channel_binding(config.get_channel_binding())
        .load_balance_hosts(config.get_load_balance_hosts());
    match config.get_hosts().get(index) {
        Some(Host::Tcp(host)) => single.host(host),
        Some(Host::Unix(path)) => single.host_path(path),
        None => &mut single,
    };
    if let Some(address) = config.get_hostaddrs().get(index) {
        single.hostaddr(*address);
    }
    let ports = config.get_ports();
    if let Some(port) = ports.get(index).or_else(|| ports.first()) {
        single.port(*port);
    }
    single
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: &str = "user=u&password=p&dbname=d&options=-cx%3Dy&application_name=a\
         &sslmode=require&sslnegotiation=direct&connect_timeout=3&tcp_user_timeout=4&keepalives=0\
         &keepalives_idle=5&keepalives_interval=6&keepalives_retries=7&channel_binding=require\
         &target_session_attrs=read-write";

    fn hosts(text: &str) -> Vec<Config> {
        single_hosts(&text.parse().expect("a configuration"))
    }

    #[test]
    fn a_single_host_keeps_all_settings() {
        let with_settings = |host: &str| format!("postgres://{host}?{SETTINGS}");
        let expected: Vec<_> = ["one:1", "two:2"]
            .map(|host| with_settings(host).parse().expect("a URL"))
            .to_vec();
        assert!(hosts(&with_settings("one:1,two:2")) == expected);
        let numbered = hosts("host=one,two hostaddr=127.0.0.1,127.0.0.2 user=u port=7");
        let second = "host=two hostaddr=127.0.0.2 user=u port=7";
        assert!(numbered[1] == second.parse().expect("settings"));
    }

    #[test]
    fn the_order_is_random_only_if_the_url_says_so() {
        let first = |setting: &str| {
            let tries = (0..50).map(|_| hosts(&format!("postgres://one,two?{setting}"))[0].clone());
            let is_first = |host: &Config| host.get_hosts()[0] == Host::Tcp("one".to_owned());
            tries.filter(is_first).count()
        };
        assert_eq!(first("load_balance_hosts=disable"), 50);
        assert!((1..50).contains(&first("load_balance_hosts=random")));
    }

    #[test]
    fn the_library_reports_a_wrong_number_of_ports() {
        assert_eq!(hosts("host=a,b,c port=1,2 user=u").len(), 1);
    }
}
