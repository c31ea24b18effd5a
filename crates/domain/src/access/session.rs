//! Sessions of signed-in users.

use super::session_client::SessionClient;
use crate::audit::{Changes, FieldChange};
use crate::vocabulary::digest::{Digest, hex};
use crate::vocabulary::id::UserId;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// Maximum lifetime of a session.
pub const SESSION_LIFETIME: Duration = Duration::from_hours(14 * 24);
/// Maximum idle time of a session.
pub const SESSION_IDLE_MAX: Duration = Duration::from_hours(3 * 24);
/// Minimum interval between updates of a session's last-used time. A shorter interval would turn
/// every page view into a write.
pub const SESSION_SEEN_STEP: Duration = Duration::from_mins(5);

/// Sessions that a user sees: more than anybody has browsers.
pub const SESSIONS_LISTED_MAX: u32 = 100;
/// Bytes of the name of a session.
const NAME_BYTES: usize = 8;

/// Names a session by its token's digest, in pages and forms. The name cannot be used to sign in, and
/// does not show the digest.
pub fn session_name(token_digest: &Digest) -> String {
    hex(&Digest::of(token_digest.as_bytes()).as_bytes()[..NAME_BYTES])
}

/// How a user signed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInMethod {
    /// With a password.
    Password,
    /// At the organization's provider.
    SingleSignOn,
    /// With a passkey, which is two factors at once.
    Passkey,
}

crate::keywords! {
    SignInMethod {
        Password => "password",
        SingleSignOn => "single_sign_on",
        Passkey => "passkey",
    }
}

impl SignInMethod {
    /// Returns the audit log fields of a sign-in. Without any, it was with a password.
    pub fn changes(self) -> Vec<FieldChange> {
        let mut changes = Changes::new();
        let method = (self != Self::Password).then(|| self.as_str().to_owned());
        changes.initial("method", method);
        changes.into_vec()
    }
}

/// Stored record of a session, without its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// User of the session.
    pub user: UserId,
    /// Start time.
    pub created_at: Timestamp,
    /// Last use, accurate to [`SESSION_SEEN_STEP`].
    pub last_seen_at: Timestamp,
    /// Last proof of who the user is: the sign-in, or a later one.
    pub proved_at: Timestamp,
    /// Expiry time.
    pub expires_at: Timestamp,
    /// Where it was last used from.
    pub client: SessionClient,
    /// How the user signed in.
    pub method: SignInMethod,
}

impl Session {
    /// Starts a session with a password.
    pub fn begin(user: UserId, now: Timestamp, client: SessionClient) -> Self {
        Self {
            method: SignInMethod::Password,
            user,
            created_at: now,
            last_seen_at: now,
            proved_at: now,
            expires_at: now.plus(SESSION_LIFETIME),
            client,
        }
    }

    /// Returns whether the session is neither expired nor idle for too long.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        now < self.expires_at && now < self.last_seen_at.plus(SESSION_IDLE_MAX)
    }

    /// Returns whether to record this use: no use was recorded within the last
    /// [`SESSION_SEEN_STEP`].
    pub fn should_record_use(&self, now: Timestamp) -> bool {
        now.since(self.last_seen_at) >= SESSION_SEEN_STEP
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const HOUR: i64 = 60 * 60 * 1_000;

    fn begin(at: Timestamp) -> Session {
        Session::begin(UserId::from_bytes([1; 16]), at, SessionClient::default())
    }

    #[rstest]
    #[case::fresh(0, 0, true)]
    #[case::used_every_day(13 * 24, 13 * 24, true)]
    #[case::expired(14 * 24, 14 * 24, false)]
    #[case::idle(0, 3 * 24, false)]
    #[case::idle_for_less(0, 3 * 24 - 1, true)]
    fn sessions_expire_by_age_and_idle_time(
        #[case] seen: i64,
        #[case] now: i64,
        #[case] valid: bool,
    ) {
        let at = |hours: i64| Timestamp::from_millis(hours * HOUR);
        let session = Session {
            last_seen_at: at(seen),
            ..begin(at(0))
        };
        assert_eq!(session.is_valid(at(now)), valid);
    }

    #[test]
    fn records_a_use_every_five_minutes() {
        let session = begin(Timestamp::from_millis(0));
        assert!(!session.should_record_use(Timestamp::from_millis(299_999)));
        assert!(session.should_record_use(Timestamp::from_millis(300_000)));
    }
}
