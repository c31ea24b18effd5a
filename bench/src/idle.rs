//! Idle keep-alive connections.

use anyhow::{Context as _, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

/// Connections that have sent one request each and then stay open.
#[derive(Debug)]
pub(crate) struct IdleConnections(Vec<TcpStream>);

impl IdleConnections {
    /// Returns settings under which the server accepts all connections and keeps them open.
    pub(crate) fn settings() -> Vec<(String, String)> {
        [
            ("TRIBUTARY_LIMITS__CONNECTIONS", "100000"),
            ("TRIBUTARY_LIMITS__CONNECTIONS_PER_ADDRESS", "0"),
            ("TRIBUTARY_HTTP__HEADER_TIMEOUT_SECONDS", "3600"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
    }

    /// Opens connections and sends one request on each.
    pub(crate) fn open(server: SocketAddr, count: usize) -> anyhow::Result<Self> {
        let limit = getrlimit(Resource::Nofile);
        setrlimit(
            Resource::Nofile,
            Rlimit {
                current: limit.maximum,
                maximum: limit.maximum,
            },
        )?;
        let mut streams = Vec::with_capacity(count);
        for number in 0..count {
            let mut stream = TcpStream::connect(server)
                .with_context(|| format!("cannot open idle connection {number} of {count}"))?;
            stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: bench\r\n\r\n")?;
            // The response is short and arrives as a whole.
            let _length = stream.read(&mut [0; 4096])?;
            streams.push(stream);
        }
        Ok(Self(streams))
    }

    /// Fails if the server has closed a connection.
    pub(crate) fn check_all_open(&self) -> anyhow::Result<()> {
        for stream in &self.0 {
            stream.set_nonblocking(true)?;
            let is_open = matches!(
                stream.peek(&mut [0]),
                Err(error) if error.kind() == ErrorKind::WouldBlock
            );
            if !is_open {
                bail!("the server closed an idle connection");
            }
        }
        Ok(())
    }
}
