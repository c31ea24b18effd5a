//! Sessions: a person who is signed in, in one browser.

use crate::vocabulary::id::UserId;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// How long a session lasts, however busy it is.
pub const SESSION_LIFETIME: Duration = Duration::from_hours(14 * 24);
/// How long a session lasts when nobody uses it.
pub const SESSION_IDLE_MAX: Duration = Duration::from_hours(3 * 24);
/// How often a session's last use is written down. More often would make every page a write.
pub const SESSION_SEEN_STEP: Duration = Duration::from_mins(5);

/// A session as it is known to the service: everything but its token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    /// Whose.
    pub user: UserId,
    /// Since when.
    pub created_at: Timestamp,
    /// When it was last used, give or take [`SESSION_SEEN_STEP`].
    pub last_seen_at: Timestamp,
    /// From when it is refused.
    pub expires_at: Timestamp,
}

impl Session {
    /// One that begins now.
    pub fn begin(user: UserId, now: Timestamp) -> Self {
        Self {
            user,
            created_at: now,
            last_seen_at: now,
            expires_at: now.plus(SESSION_LIFETIME),
        }
    }

    /// Neither over nor forgotten.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        now < self.expires_at && now < self.last_seen_at.plus(SESSION_IDLE_MAX)
    }

    /// Whether this use is worth writing down.
    pub fn should_record_use(&self, now: Timestamp) -> bool {
        now.since(self.last_seen_at) >= SESSION_SEEN_STEP
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const HOUR: i64 = 60 * 60 * 1_000;

    #[rstest]
    #[case::fresh(0, 0, true)]
    #[case::used_every_day(13 * 24, 13 * 24, true)]
    #[case::over(14 * 24, 14 * 24, false)]
    #[case::left_alone(0, 3 * 24, false)]
    #[case::left_alone_for_less(0, 3 * 24 - 1, true)]
    fn a_session_ends(#[case] seen: i64, #[case] now: i64, #[case] valid: bool) {
        let at = |hours: i64| Timestamp::from_millis(hours * HOUR);
        let session = Session {
            last_seen_at: at(seen),
            ..Session::begin(UserId::from_bytes([1; 16]), at(0))
        };
        assert_eq!(session.is_valid(at(now)), valid);
    }

    #[test]
    fn a_use_is_written_down_now_and_then() {
        let session = Session::begin(UserId::from_bytes([1; 16]), Timestamp::from_millis(0));
        assert!(!session.should_record_use(Timestamp::from_millis(299_999)));
        assert!(session.should_record_use(Timestamp::from_millis(300_000)));
    }
}
