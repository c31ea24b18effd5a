//! SDK keys of an app: the current one of each environment, and those that it replaced.
//!
//! An SDK key is public and ships with the app, so a replaced key stays valid until installed apps
//! have been updated.

use super::App;
use crate::access::Environment;
use crate::access::key::{KeyKind, KeyText};
use crate::audit::FieldChange;
use crate::refusal::Refusal;
use crate::vocabulary::fault::{FaultCode, Problem};
use crate::vocabulary::time::Timestamp;
use std::cmp::Reverse;
use std::time::Duration;

/// Days for which a replaced key stays valid by default. Most people update an app within a quarter.
pub const SDK_KEY_OVERLAP_DAYS_DEFAULT: u32 = 90;
/// Maximum number of these days: two years.
pub const SDK_KEY_OVERLAP_DAYS_MAX: u32 = 730;
/// Valid keys of an app in one environment, with the current one. Each is looked up with the app.
pub const VALID_SDK_KEYS_MAX: usize = 5;
/// Ended keys of an app in one environment that are kept, those that ended last: enough to see how long
/// released apps used them.
pub const ENDED_SDK_KEYS_KEPT_MAX: usize = 20;
/// How long a use is not recorded again. The last use matters by the day.
pub const SDK_KEY_USE_INTERVAL: Duration = Duration::from_hours(1);

/// Whether an SDK key works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SdkKeyState {
    /// The key for new releases of the app.
    Current,
    /// Replaced, and still valid.
    Replaced,
    /// No longer valid.
    Ended,
}

crate::keywords! {
    SdkKeyState {
        Current => "current",
        Replaced => "replaced",
        Ended => "ended",
    }
}

/// An SDK key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SdkKey {
    /// The key.
    pub text: String,
    /// Live or test.
    pub environment: Environment,
    /// End of a replaced key; `None` for the current one.
    pub expires_at: Option<Timestamp>,
    /// Last use, accurate to [`SDK_KEY_USE_INTERVAL`].
    pub last_used_at: Option<Timestamp>,
}

impl SdkKey {
    /// Returns whether the key works.
    pub fn state(&self, now: Timestamp) -> SdkKeyState {
        match self.expires_at {
            None => SdkKeyState::Current,
            Some(end) if now < end => SdkKeyState::Replaced,
            Some(_) => SdkKeyState::Ended,
        }
    }

    /// Returns whether the key is valid.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.state(now) != SdkKeyState::Ended
    }

    /// Returns whether to record a use.
    pub fn should_record_use(&self, now: Timestamp) -> bool {
        self.last_used_at
            .is_none_or(|last| now.since(last) >= SDK_KEY_USE_INTERVAL)
    }
}

/// How to replace the current key of an environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SdkKeyRotation {
    /// Environment of the key.
    pub environment: Environment,
    /// The new key.
    pub successor: String,
    /// How long the replaced key stays valid.
    pub overlap: Duration,
}

/// The end of a replaced key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SdkKeyEnd {
    /// The key.
    pub text: String,
    /// Its end.
    pub expires_at: Timestamp,
}

/// Returns the keys of an environment that ended before those that are kept.
fn forgotten(keys: &[SdkKey], environment: Environment, now: Timestamp) -> Vec<String> {
    let is_ended = |key: &&SdkKey| key.environment == environment && !key.is_valid(now);
    let mut ended: Vec<&SdkKey> = keys.iter().filter(is_ended).collect();
    ended.sort_by_key(|key| Reverse(key.expires_at));
    let forgotten = ended.into_iter().skip(ENDED_SDK_KEYS_KEPT_MAX);
    forgotten.map(|key| key.text.clone()).collect()
}

/// A rotation that may be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RotatedSdkKey {
    /// The app with the new key.
    pub app: App,
    /// The replaced key.
    pub replaced: SdkKeyEnd,
    /// Keys to remove, which ended long ago.
    pub forgotten: Vec<String>,
    /// Audit log fields.
    pub changes: Vec<FieldChange>,
}

/// Parses an SDK key.
pub fn parse_sdk_key(text: &str) -> Result<String, Problem> {
    let parsed = KeyText::parse(text).ok();
    let parsed = parsed.filter(|key| key.kind == KeyKind::Sdk);
    parsed.map(|key| key.reveal().to_owned()).ok_or_else(|| {
        let message = "Must be an SDK key (pk_live_… or pk_test_…).";
        Problem::new(FaultCode::InvalidFormat, message)
    })
}

const fn audited_field(environment: Environment) -> &'static str {
    match environment {
        Environment::Live => "sdk.liveKey",
        Environment::Test => "sdk.testKey",
    }
}

impl App {
    /// Replaces the current key of an environment. `keys` are all of the app's keys.
    pub fn with_rotated_sdk_key(
        &self,
        keys: &[SdkKey],
        rotation: &SdkKeyRotation,
        now: Timestamp,
    ) -> Result<RotatedSdkKey, Refusal> {
        let environment = rotation.environment;
        let is_valid = |key: &&SdkKey| key.environment == environment && key.is_valid(now);
        let ends_at_once = usize::from(rotation.overlap.is_zero());
        // The new key is one more, unless the replaced one ends at once.
        if keys.iter().filter(is_valid).count() >= VALID_SDK_KEYS_MAX + ends_at_once {
            return Err(Refusal::TooManySdkKeys);
        }
        let mut app = self.clone();
        let current = match environment {
            Environment::Live => &mut app.sdk.live_key,
            Environment::Test => &mut app.sdk.test_key,
        };
        let replaced = std::mem::replace(current, rotation.successor.clone());
        app.revision = self.revision.next();
        app.updated_at = now;
        let changes = vec![FieldChange {
            field: audited_field(environment).to_owned(),
            before: Some(replaced.clone()),
            after: Some(rotation.successor.clone()),
        }];
        let expires_at = now.plus(rotation.overlap);
        Ok(RotatedSdkKey {
            app,
            replaced: SdkKeyEnd {
                text: replaced,
                expires_at,
            },
            forgotten: forgotten(keys, environment, now),
            changes,
        })
    }
}

/// Ends a replaced key now. Returns `None` if it has ended already. The current key ends only by a
/// rotation, because the app would have none.
pub fn revoke_sdk_key(
    keys: &[SdkKey],
    text: &str,
    now: Timestamp,
) -> Result<Option<(SdkKeyEnd, FieldChange)>, Refusal> {
    let found = keys.iter().find(|key| key.text == text);
    let key = found.filter(|key| key.expires_at.is_some());
    let key = key.ok_or(Refusal::SdkKeyNotFound)?;
    if !key.is_valid(now) {
        return Ok(None);
    }
    let end = SdkKeyEnd {
        text: key.text.clone(),
        expires_at: now,
    };
    let change = FieldChange {
        field: format!("{}.replaced", audited_field(key.environment)),
        before: Some(key.text.clone()),
        after: None,
    };
    Ok(Some((end, change)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::change::tests::any_app;
    use rstest::rstest;

    const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);
    const DAY: Duration = Duration::from_hours(24);

    fn key(text: &str, environment: Environment, expires_at: Option<Timestamp>) -> SdkKey {
        SdkKey {
            text: text.to_owned(),
            environment,
            expires_at,
            last_used_at: None,
        }
    }

    /// Returns the current key and `replaced` more that end tomorrow.
    fn keys(app: &App, replaced: usize) -> Vec<SdkKey> {
        let mut keys = vec![key(&app.sdk.live_key, Environment::Live, None)];
        for number in 0..replaced {
            let text = format!("pk_live_{number}");
            keys.push(key(&text, Environment::Live, Some(NOW.plus(DAY))));
        }
        keys
    }

    fn rotation(environment: Environment, overlap: Duration) -> SdkKeyRotation {
        SdkKeyRotation {
            environment,
            successor: "pk_new".to_owned(),
            overlap,
        }
    }

    #[test]
    fn a_rotation_keeps_the_old_key_for_the_overlap() {
        let app = any_app();
        let rotation = rotation(Environment::Live, DAY);
        let rotated = app.with_rotated_sdk_key(&keys(&app, 0), &rotation, NOW);
        let rotated = rotated.unwrap();
        assert_eq!(rotated.app.sdk.live_key, "pk_new");
        assert_eq!(rotated.app.sdk.test_key, app.sdk.test_key);
        assert_eq!(rotated.app.revision, app.revision.next());
        assert_eq!(rotated.replaced.text, app.sdk.live_key);
        assert_eq!(rotated.replaced.expires_at, NOW.plus(DAY));
        assert_eq!(rotated.changes[0].field, "sdk.liveKey");
    }

    #[rstest]
    #[case::few(3, DAY, Environment::Live, true)]
    #[case::as_many_as_allowed(4, DAY, Environment::Live, false)]
    #[case::the_old_one_ends_at_once(4, Duration::ZERO, Environment::Live, true)]
    #[case::another_environment(4, DAY, Environment::Test, true)]
    fn valid_keys_are_limited(
        #[case] replaced: usize,
        #[case] overlap: Duration,
        #[case] environment: Environment,
        #[case] allowed: bool,
    ) {
        let app = any_app();
        let rotation = rotation(environment, overlap);
        let rotated = app.with_rotated_sdk_key(&keys(&app, replaced), &rotation, NOW);
        assert_eq!(rotated.is_ok(), allowed);
        let tomorrow = app.with_rotated_sdk_key(&keys(&app, replaced), &rotation, NOW.plus(DAY));
        assert!(tomorrow.is_ok(), "expired keys do not count");
    }

    #[test]
    fn a_rotation_forgets_the_keys_that_ended_first() {
        let app = any_app();
        let mut keys = keys(&app, 1);
        for hours in 0..=20_u8 {
            let end = NOW.minus(Duration::from_hours(hours.into()));
            keys.push(key(
                &format!("pk_live_ended_{hours}"),
                Environment::Live,
                Some(end),
            ));
        }
        let rotated = app.with_rotated_sdk_key(&keys, &rotation(Environment::Live, DAY), NOW);
        assert_eq!(rotated.unwrap().forgotten, ["pk_live_ended_20"]);
        let rotated = app.with_rotated_sdk_key(&keys, &rotation(Environment::Test, DAY), NOW);
        assert_eq!(rotated.unwrap().forgotten, Vec::<String>::new());
    }

    #[rstest]
    #[case::replaced("pk_live_0", 0, Some(NOW))]
    #[case::ended_already("pk_live_0", 1, None)]
    fn a_replaced_key_is_revoked_once(
        #[case] text: &str,
        #[case] days: u32,
        #[case] expected: Option<Timestamp>,
    ) {
        let now = NOW.plus(DAY * days);
        let revoked = revoke_sdk_key(&keys(&any_app(), 1), text, now).unwrap();
        assert_eq!(revoked.map(|(end, _)| end.expires_at), expected);
    }

    #[test]
    fn the_current_key_and_unknown_keys_cannot_be_revoked() {
        let app = any_app();
        for text in [app.sdk.live_key.as_str(), "pk_live_unknown"] {
            let refused = revoke_sdk_key(&keys(&app, 1), text, NOW);
            assert_eq!(refused, Err(Refusal::SdkKeyNotFound));
        }
    }

    #[rstest]
    #[case::current(None, 0, SdkKeyState::Current)]
    #[case::before_the_end(Some(1), 0, SdkKeyState::Replaced)]
    #[case::at_the_end(Some(1), 1, SdkKeyState::Ended)]
    fn a_replaced_key_ends(
        #[case] end: Option<u32>,
        #[case] days: u32,
        #[case] expected: SdkKeyState,
    ) {
        let end = end.map(|days| NOW.plus(DAY * days));
        let (key, now) = (
            key("pk_live_0", Environment::Live, end),
            NOW.plus(DAY * days),
        );
        assert_eq!(key.state(now), expected);
        assert_eq!(key.is_valid(now), expected != SdkKeyState::Ended);
    }

    #[rstest]
    #[case::never(None, true)]
    #[case::just_now(Some(0), false)]
    #[case::an_hour_ago(Some(60), true)]
    fn a_use_is_recorded_once_an_hour(#[case] minutes: Option<u64>, #[case] expected: bool) {
        let key = SdkKey {
            last_used_at: minutes.map(|minutes| NOW.minus(Duration::from_mins(minutes))),
            ..key("pk_live_0", Environment::Live, None)
        };
        assert_eq!(key.should_record_use(NOW), expected);
    }

    #[test]
    fn only_sdk_keys_are_parsed() {
        let text = |kind| KeyText::generate(kind, Environment::Live, [1; 24]);
        let sdk = text(KeyKind::Sdk);
        assert_eq!(parse_sdk_key(sdk.reveal()), Ok(sdk.reveal().to_owned()));
        for other in [text(KeyKind::Private).reveal(), "pk_live_1", ""] {
            assert!(parse_sdk_key(other).is_err(), "{other}");
        }
    }
}
