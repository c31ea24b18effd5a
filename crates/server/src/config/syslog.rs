//! The syslog server for audit entries.

use super::parse::ParseResult;
use std::path::PathBuf;

/// Where a syslog server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SyslogTarget {
    /// Host and port for UDP.
    Udp(String),
    /// Path of a datagram socket on this machine.
    Unix(PathBuf),
}

const EXPECTED: &str =
    "must be udp://HOST:PORT or unix:/PATH, such as udp://192.0.2.5:514 or unix:/dev/log";

impl SyslogTarget {
    /// Parses the setting, or returns what is expected.
    pub fn parse(text: &str) -> ParseResult<Self> {
        if let Some(path) = text.strip_prefix("unix:") {
            let path = PathBuf::from(path);
            return path
                .is_absolute()
                .then_some(Self::Unix(path))
                .ok_or(EXPECTED);
        }
        let server = text.strip_prefix("udp://").ok_or(EXPECTED)?;
        let (host, port) = server.rsplit_once(':').ok_or(EXPECTED)?;
        let is_host = !host.is_empty() && !host.contains(['/', '@', ' ']);
        let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
        if is_host && is_port {
            Ok(Self::Udp(server.to_owned()))
        } else {
            Err(EXPECTED)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::address("udp://192.0.2.5:514", Some(SyslogTarget::Udp("192.0.2.5:514".to_owned())))]
    #[case::ipv6("udp://[2001:db8::5]:514", Some(SyslogTarget::Udp("[2001:db8::5]:514".to_owned())))]
    #[case::name("udp://log.example.com:6514", Some(SyslogTarget::Udp("log.example.com:6514".to_owned())))]
    #[case::socket("unix:/dev/log", Some(SyslogTarget::Unix(PathBuf::from("/dev/log"))))]
    #[case::relative_path("unix:dev/log", None)]
    #[case::no_port("udp://192.0.2.5", None)]
    #[case::port_zero("udp://192.0.2.5:0", None)]
    #[case::path("udp://192.0.2.5:514/x", None)]
    #[case::another_protocol("tcp://192.0.2.5:514", None)]
    #[case::neither("/dev/log", None)]
    fn reads_the_setting(#[case] text: &str, #[case] expected: Option<SyslogTarget>) {
        assert_eq!(SyslogTarget::parse(text).ok(), expected);
    }
}
