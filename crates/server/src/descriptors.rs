//! Raises the limit on open files.
//!
//! Every connection uses a file descriptor, and the default limit is often lower than
//! `limits.connections`. Without a free descriptor, new connections wait in the kernel's backlog.

use crate::config::Config;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors reserved for the database, the listeners and the log.
const RESERVED_DESCRIPTORS: u64 = 64;

/// Returns the number of descriptors that the configuration needs.
pub fn required(config: &Config) -> u64 {
    u64::from(config.limits.connections) + RESERVED_DESCRIPTORS
}

/// Returns the hard limit on descriptors for processes started from here; `None` is unlimited.
pub fn hard_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}

/// Raises the soft limit to the hard limit, and warns if that is still too low. The soft limit is
/// low only to protect programs that use `select`, which this program does not.
pub fn raise_limit(config: &Config) {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if raised != limit
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        tracing::warn!(%error, "failed to raise the limit on open files");
    }
    let allowed = getrlimit(Resource::Nofile).current;
    if let Some(shortage) = shortage(allowed, required(config)) {
        tracing::warn!("{shortage}");
    }
}

/// Returns a warning for the operator if fewer descriptors are allowed than required.
pub fn shortage(allowed: Option<u64>, wanted: u64) -> Option<String> {
    let allowed = allowed.filter(|allowed| *allowed < wanted)?;
    Some(format!(
        "the limit on open files is {allowed}, but `limits.connections` needs {wanted}: raise the \
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
    fn warns_when_fewer_descriptors_are_allowed_than_required(
        #[case] allowed: Option<u64>,
        #[case] expected: bool,
    ) {
        let environment = [("TRIBUTARY_LIMITS__CONNECTIONS".to_owned(), "100".to_owned())];
        let config = Config::load(None, environment.into_iter()).unwrap();
        assert_eq!(shortage(allowed, required(&config)).is_some(), expected);
    }

    #[test]
    fn raises_the_soft_limit_to_the_hard_limit() {
        raise_limit(&Config::load(None, std::iter::empty()).unwrap());
        assert_eq!(getrlimit(Resource::Nofile).current, hard_limit());
    }
}
