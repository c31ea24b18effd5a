//! A timer for the header timeout that is cheap to restart.
//!
//! hyper starts a timer when it waits for a request and drops it when the request's head has
//! arrived. With tokio's timers, each request would lock the runtime's timers twice. Here each
//! connection has one tokio timer, which keeps running when hyper drops its own. It is moved only
//! when it expires before the current deadline, which is once per timeout instead of per request.

use hyper::rt::Timer;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::time::Sleep;

/// The timer of one connection.
pub(super) struct HeaderTimer(Arc<Mutex<Pin<Box<Sleep>>>>);

impl HeaderTimer {
    /// Creates a timer that starts with this timeout.
    pub(super) fn new(timeout: Duration) -> Self {
        let alarm = Box::pin(tokio::time::sleep(timeout));
        Self(Arc::new(Mutex::new(alarm)))
    }
}

impl Timer for HeaderTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(HeaderDeadline {
            deadline: deadline.into(),
            alarm: self.0.clone(),
        })
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into()
    }
}

/// Deadline for the head of one request.
struct HeaderDeadline {
    deadline: tokio::time::Instant,
    alarm: Arc<Mutex<Pin<Box<Sleep>>>>,
}

impl Future for HeaderDeadline {
    type Output = ();

    fn poll(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<()> {
        let mut alarm = self.alarm.lock().unwrap_or_else(PoisonError::into_inner);
        if alarm.deadline() > self.deadline {
            alarm.as_mut().reset(self.deadline);
        }
        ready!(alarm.as_mut().poll(task));
        if alarm.deadline() >= self.deadline {
            return Poll::Ready(());
        }
        // The alarm was set for an earlier request.
        alarm.as_mut().reset(self.deadline);
        alarm.as_mut().poll(task)
    }
}

impl hyper::rt::Sleep for HeaderDeadline {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::time::{Instant, advance};

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_later_request_has_its_own_deadline() {
        let begun = Instant::now();
        let timer = HeaderTimer::new(10 * SECOND);
        for seconds in [3, 6] {
            let mut waiting = timer.sleep(10 * SECOND);
            let is_pending = poll_fn(|task| Poll::Ready(waiting.as_mut().poll(task).is_pending()));
            assert!(is_pending.await);
            advance(seconds * SECOND).await;
        }
        timer.sleep(10 * SECOND).await;
        assert_eq!(begun.elapsed(), 19 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_shorter_timeout_moves_the_alarm() {
        let begun = Instant::now();
        let timer = HeaderTimer::new(10 * SECOND);
        timer.sleep(SECOND).await;
        timer.sleep(2 * SECOND).await;
        assert_eq!(begun.elapsed(), 3 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_does_not_disturb_the_next_request() {
        let timer = HeaderTimer::new(SECOND);
        advance(5 * SECOND).await;
        let begun = Instant::now();
        timer.sleep(SECOND).await;
        assert_eq!(begun.elapsed(), SECOND);
    }
}
