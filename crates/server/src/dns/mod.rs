//! Lookup of TXT records, which verify link domains.
//!
//! The standard library resolves addresses only. This client sends one kind of query to the
//! operator's own name servers, which do the recursion: over UDP, and over TCP if the response does
//! not fit into a datagram. See `docs/adr`.

mod message;

use message::{DnsResponse, parse, query};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;
use tributary_domain::runtime::Runtime;

/// Where the system lists its name servers.
const RESOLV_CONF: &str = "/etc/resolv.conf";
/// Port of name servers.
const DNS_PORT: u16 = 53;
/// Name servers used, as by the system's resolver.
const SERVERS_MAX: usize = 3;
/// Queries sent to each server, because datagrams get lost.
const TRIES: usize = 2;
/// Time to wait for a response. All tries together stay below the deadline of a request.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Largest datagram read. Servers send at most 512 bytes to clients without EDNS.
const DATAGRAM_BYTES_MAX: usize = 4_096;
/// Datagrams read per query. Forged responses are skipped, but not forever.
const DATAGRAMS_MAX: usize = 16;

/// Looks up TXT records.
#[derive(Clone)]
pub struct TxtClient {
    servers: Vec<SocketAddr>,
    runtime: Runtime,
}

impl TxtClient {
    /// Creates a client for the given name server, or for the system's name servers.
    pub fn new(server: Option<SocketAddr>, runtime: Runtime) -> Self {
        let servers = server.map_or_else(|| system_servers(Path::new(RESOLV_CONF)), |it| vec![it]);
        Self { servers, runtime }
    }

    /// Returns the TXT records of a name; none if the name does not exist. Returns `None` if no
    /// server answered.
    pub async fn txt_records(&self, name: &str) -> Option<Vec<String>> {
        for _ in 0..TRIES {
            for server in &self.servers {
                if let Some(records) = self.ask(*server, name).await {
                    return Some(records);
                }
            }
        }
        tracing::warn!("no name server answered; check dns.server");
        None
    }

    async fn ask(&self, server: SocketAddr, name: &str) -> Option<Vec<String>> {
        let id = u16::from_be_bytes(self.runtime.random_bytes());
        let query = query(id, name)?;
        let answer = async {
            match over_udp(server, &query, id, name).await? {
                DnsResponse::Truncated => over_tcp(server, &query, id, name).await,
                response => Some(response),
            }
        };
        match timeout(RESPONSE_TIMEOUT, answer).await.ok()?? {
            DnsResponse::Records(records) => Some(records),
            DnsResponse::Truncated | DnsResponse::Failed => None,
        }
    }
}

/// Asks over UDP. The port is random, and the socket only receives from this server, so that a
/// stranger has to guess both the port and the id.
async fn over_udp(server: SocketAddr, query: &[u8], id: u16, name: &str) -> Option<DnsResponse> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await.ok()?;
    socket.connect(server).await.ok()?;
    socket.send(query).await.ok()?;
    let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
    for _ in 0..DATAGRAMS_MAX {
        let length = socket.recv(&mut buffer).await.ok()?;
        let response = buffer.get(..length).and_then(|it| parse(it, id, name));
        if response.is_some() {
            return response;
        }
    }
    None
}

/// Asks over TCP, where each message is preceded by its length.
async fn over_tcp(server: SocketAddr, query: &[u8], id: u16, name: &str) -> Option<DnsResponse> {
    let mut stream = TcpStream::connect(server).await.ok()?;
    let length = u16::try_from(query.len()).ok()?;
    stream.write_all(&length.to_be_bytes()).await.ok()?;
    stream.write_all(query).await.ok()?;
    let length = stream.read_u16().await.ok()?;
    let mut response = vec![0; usize::from(length)];
    stream.read_exact(&mut response).await.ok()?;
    parse(&response, id, name)
}

/// Returns the system's name servers, or the local one if none is configured.
fn system_servers(file: &Path) -> Vec<SocketAddr> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let mut servers: Vec<SocketAddr> = text.lines().filter_map(name_server).collect();
    servers.truncate(SERVERS_MAX);
    if servers.is_empty() {
        servers.push((Ipv4Addr::LOCALHOST, DNS_PORT).into());
    }
    servers
}

fn name_server(line: &str) -> Option<SocketAddr> {
    let mut words = line.split_whitespace();
    let address = words.next().filter(|word| *word == "nameserver");
    let address: IpAddr = address.and_then(|_| words.next())?.parse().ok()?;
    Some((address, DNS_PORT).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system;
    use rstest::rstest;
    use tokio::net::TcpListener;

    const NAME: &str = "_tributary.go.example.com";

    /// Returns the response to a query with one TXT record, or a truncated one.
    fn response(query: &[u8], truncated: bool) -> Vec<u8> {
        let mut message = query.to_vec();
        message[2] |= 0x80;
        if truncated {
            message[2] |= 0x02;
            return message;
        }
        message[7] = 1;
        message.extend(b"\xc0\x0c\x00\x10\x00\x01\x00\x00\x00\x3c\x00\x06\x05proof");
        message
    }

    /// Starts a server that answers one query after `lost` lost ones.
    async fn udp_server(lost: usize, truncated: bool) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let mut buffer = [0; 512];
            for number in 0..=lost {
                let (length, peer) = socket.recv_from(&mut buffer).await.unwrap();
                if number < lost {
                    continue;
                }
                let mut forged = response(&buffer[..length], false);
                forged[0] ^= 0xff;
                socket.send_to(&forged, peer).await.unwrap();
                let answer = response(&buffer[..length], truncated);
                socket.send_to(&answer, peer).await.unwrap();
            }
        });
        address
    }

    #[tokio::test]
    async fn returns_the_records_and_skips_forged_responses() {
        let client = TxtClient::new(Some(udp_server(0, false).await), system::runtime());
        let records = client.txt_records(NAME).await;
        assert_eq!(records, Some(vec!["proof".to_owned()]));
    }

    #[tokio::test]
    async fn asks_again_after_a_lost_datagram() {
        let client = TxtClient::new(Some(udp_server(1, false).await), system::runtime());
        let records = client.txt_records(NAME).await;
        assert_eq!(records, Some(vec!["proof".to_owned()]));
    }

    #[tokio::test]
    async fn asks_over_tcp_after_a_truncated_response() {
        // Another process may use the UDP port's number for TCP.
        let (address, listener) = loop {
            let address = udp_server(0, true).await;
            if let Ok(listener) = TcpListener::bind(address).await {
                break (address, listener);
            }
        };
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut query = vec![0; usize::from(stream.read_u16().await.unwrap())];
            stream.read_exact(&mut query).await.unwrap();
            let answer = response(&query, false);
            let length = u16::try_from(answer.len()).unwrap();
            stream.write_all(&length.to_be_bytes()).await.unwrap();
            stream.write_all(&answer).await.unwrap();
        });
        let client = TxtClient::new(Some(address), system::runtime());
        let records = client.txt_records(NAME).await;
        assert_eq!(records, Some(vec!["proof".to_owned()]));
    }

    #[rstest]
    #[case("nameserver 192.0.2.1", Some("192.0.2.1:53"))]
    #[case("  nameserver\t2001:db8::1 # office", Some("[2001:db8::1]:53"))]
    #[case("# nameserver 192.0.2.1", None)]
    #[case("nameserver", None)]
    #[case("nameserver dns.example.com", None)]
    #[case("search example.com", None)]
    fn reads_name_servers(#[case] line: &str, #[case] expected: Option<&str>) {
        let expected = expected.map(|text| text.parse().unwrap());
        assert_eq!(name_server(line), expected);
    }

    #[test]
    fn without_configuration_the_local_server_is_asked() {
        let servers = system_servers(Path::new("does/not/exist"));
        assert_eq!(servers, ["127.0.0.1:53".parse().unwrap()]);
    }
}
