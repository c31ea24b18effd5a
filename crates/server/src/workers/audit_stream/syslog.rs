//! Sends audit entries to a syslog server as messages of RFC 5424.

use super::AuditSink;
use crate::config::SyslogTarget;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::os::unix::net::UnixDatagram;
use tributary_domain::audit::stream::{AuditStream, syslog_message};
use tributary_domain::runtime::Runtime;

/// A syslog server. The socket is opened for every part, so that a new address or a restarted server
/// is found.
#[derive(Clone)]
pub(in crate::workers) struct SyslogSink {
    target: SyslogTarget,
    runtime: Runtime,
}

impl SyslogSink {
    pub(in crate::workers) const fn new(target: SyslogTarget, runtime: Runtime) -> Self {
        Self { target, runtime }
    }
}

/// Sends a message. Returns how many bytes were sent.
type SendMessage = Box<dyn Fn(&[u8]) -> io::Result<usize>>;

impl AuditSink for SyslogSink {
    const STREAM: AuditStream = AuditStream::Syslog;
    const NAME: &'static str = "audit_syslog";

    fn write(&self, lines: &[String]) -> io::Result<()> {
        let now = self.runtime.now();
        let send: SendMessage = match &self.target {
            SyslogTarget::Udp(server) => {
                let address = server.to_socket_addrs()?.next();
                let address = address.ok_or(io::ErrorKind::HostUnreachable)?;
                let any: SocketAddr = match address {
                    SocketAddr::V4(_) => ([0; 4], 0).into(),
                    SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
                };
                let socket = UdpSocket::bind(any)?;
                // A connected socket reports a port without a listener.
                socket.connect(address)?;
                Box::new(move |message| socket.send(message))
            }
            SyslogTarget::Unix(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.connect(path)?;
                Box::new(move |message| socket.send(message))
            }
        };
        for line in lines {
            send(syslog_message(now, line).as_bytes())?;
        }
        Ok(())
    }
}
