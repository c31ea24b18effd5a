//! Destinations that did not answer a moment ago.

use std::collections::BTreeMap;
use std::time::Duration;
use tributary_domain::vocabulary::time::Timestamp;

/// How long a destination that did not answer is left alone. Shorter than the first wait of a
/// message, so that no retry is skipped.
const PAUSE: Duration = Duration::from_secs(4);

/// Destinations that did not answer, with the time and the reason. Messages to them fail at once, so
/// that they do not delay messages to others.
#[derive(Debug, Default)]
pub(super) struct DownDestinations(BTreeMap<String, (Timestamp, String)>);

impl DownDestinations {
    /// Returns why a destination is left alone; `None` if it is not.
    pub(super) fn reason(&self, destination: &str, now: Timestamp) -> Option<String> {
        let (since, reason) = self.0.get(destination)?;
        is_down(*since, now).then(|| reason.clone())
    }

    /// Remembers that a destination did not answer.
    pub(super) fn add(&mut self, destination: &str, reason: &str, now: Timestamp) {
        self.0.retain(|_, (since, _)| is_down(*since, now));
        self.0
            .insert(destination.to_owned(), (now, reason.to_owned()));
    }
}

/// Returns whether a destination that did not answer at `since` is left alone. A time in the future is
/// one before the clock was set back.
fn is_down(since: Timestamp, now: Timestamp) -> bool {
    (since..since.plus(PAUSE)).contains(&now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_back_does_not_prolong_the_pause() {
        let mut down = DownDestinations::default();
        down.add("a", "No answer.", Timestamp::from_millis(86_400_000));
        assert_eq!(down.reason("a", Timestamp::from_millis(1_000)), None);
    }

    #[test]
    fn a_destination_is_left_alone_for_a_moment() {
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1_000);
        let mut down = DownDestinations::default();
        down.add("a", "No answer.", at(10));
        assert_eq!(down.reason("a", at(13)).as_deref(), Some("No answer."));
        assert_eq!(down.reason("a", at(14)), None);
        assert_eq!(down.reason("b", at(11)), None);
        down.add("b", "No answer.", at(20));
        assert_eq!(down.0.len(), 1, "earlier ones are forgotten");
    }
}
