//! Open files: each connection is one, and what the system lets a process open is often less than the server
//! is set to take. Without a descriptor a connection waits in a queue that nobody sees.

use crate::config::Config;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What the server opens beside its connections: the database, the listeners, the log.
const RESERVED_DESCRIPTORS: u64 = 64;

/// How many descriptors a configuration asks for.
pub fn required(config: &Config) -> u64 {
    u64::from(config.limits.connections) + RESERVED_DESCRIPTORS
}

/// How many descriptors a server that is started from here can have; nothing: as many as it likes.
pub fn hard_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}

/// Lets this process open as many files as the system allows it, and says when that is not enough. The soft
/// limit is low for the sake of programs that use `select`; this is none of them.
pub fn raise_limit(config: &Config) {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if raised != limit
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        tracing::warn!(%error, "the limit of open files cannot be raised");
    }
    let allowed = getrlimit(Resource::Nofile).current;
    if let Some(shortage) = shortage(allowed, required(config)) {
        tracing::warn!("{shortage}");
    }
}

/// What an operator should know when fewer descriptors are allowed than wanted.
pub fn shortage(allowed: Option<u64>, wanted: u64) -> Option<String> {
    let allowed = allowed.filter(|allowed| *allowed < wanted)?;
    Some(format!(
        "only {allowed} files may be open at a time, and `limits.connections` asks for {wanted}: raise the \
         limit (ulimit -n, LimitNOFILE), or lower the setting"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::unlimited(None, false)]
    #[case::enough(Some(164), false)]
    #[case::one_less(Some(163), true)]
    fn shortages(#[case] allowed: Option<u64>, #[case] expected: bool) {
        let environment = [("TRIBUTARY_LIMITS__CONNECTIONS".to_owned(), "100".to_owned())];
        let config = Config::load(None, environment.into_iter()).unwrap();
        assert_eq!(shortage(allowed, required(&config)).is_some(), expected);
    }

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        raise_limit(&Config::load(None, std::iter::empty()).unwrap());
        assert_eq!(getrlimit(Resource::Nofile).current, hard_limit());
    }
}
