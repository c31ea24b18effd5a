//! When a queue of changes is too long for another one.

use std::time::Duration;

/// Number of changes that may wait in memory. A caller beyond this limit gets an error at once,
/// because its client would time out before the reply.
pub const QUEUE_CHANGES_MAX: usize = 8_192;
/// How long the first change in a queue may wait before further callers are rejected. An error now
/// is better for them than an answer after their own time limit, and long enough for a database
/// that restarts. Well below the time that a caller waits for its commit.
pub const QUEUE_WAIT_MAX: Duration = Duration::from_secs(3);

/// Returns whether a queue rejects another change. `first_waits` is how long its first change has
/// waited. While less than a batch waits, the newcomer is in the next commit, however slow the disk
/// is.
pub fn is_overloaded(waiting: usize, batch_max: usize, first_waits: Duration) -> bool {
    waiting >= QUEUE_CHANGES_MAX || (waiting >= batch_max && first_waits > QUEUE_WAIT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_and_slow_queue_rejects_newcomers() {
        let slow = QUEUE_WAIT_MAX + Duration::from_millis(1);
        let cases = [
            (0, Duration::ZERO, false),
            // A slow disk with few clients.
            (99, slow, false),
            (100, slow, true),
            // A burst.
            (100, QUEUE_WAIT_MAX, false),
            (QUEUE_CHANGES_MAX - 1, QUEUE_WAIT_MAX, false),
            (QUEUE_CHANGES_MAX, Duration::ZERO, true),
        ];
        for (waiting, first_waits, expected) in cases {
            let overloaded = is_overloaded(waiting, 100, first_waits);
            assert_eq!(overloaded, expected, "{waiting} {first_waits:?}");
        }
    }
}
