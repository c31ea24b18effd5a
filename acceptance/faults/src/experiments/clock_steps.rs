//! A clock that is corrected in steps, repeats a second and is smeared, under load.
//!
//! The steps of [`clock_steps`] are smaller than what the networks tolerate, so that everything is
//! delivered. [`clock_days`] sets the clock a day back and a day ahead. Networks reject events of
//! the future, so deliveries may end with a reason until the clock is right again.

use super::Episode;
use crate::account::Totals;
use crate::check::{DeliveryEnds, check, check_with};
use crate::instance::Instance;
use crate::load::{Ledger, Load};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tributary_testkit::{ClockShift, Engine};

/// Steps of the clock in milliseconds: less than the minute that networks tolerate, in both directions.
const STEP_MAX: i64 = 20_000;
/// Steps of a smeared second. Real smears take a day.
const SMEAR_STEPS: i64 = 20;
const SMEAR_PAUSE: Duration = Duration::from_millis(20);

/// How far the clock is off. More than a day, because a delivery waits for its event's time if that is
/// at most a day ahead.
const DAY: i64 = 25 * 60 * 60 * 1_000;
/// Time between two steps: longer than the server needs to notice one.
const HOLD_MIN: Duration = Duration::from_secs(3);
/// Rounds with a clock that is a day off, and the name of the load in each. The first one is a day
/// back, because an event must not be earlier than its click. In the last one, the clock is right.
const ROUNDS: [(i64, &str); 4] = [(-DAY, "back"), (0, "between"), (DAY, "ahead"), (0, "right")];

/// Sets the clock a day back and a day ahead, and corrects it after each. The clocks of the clients
/// agree with the server's; devices with other clocks are a test of their own.
pub async fn clock_days(engine: Engine, episode: Episode) -> Totals {
    let clock = ClockShift::new();
    let settings = clock
        .settings()
        .map(|(name, value)| (name.to_owned(), value));
    clock.set_millis(ROUNDS[0].0);
    let mut instance = Instance::start_with(engine, 1, settings.to_vec()).await;
    let (mut totals, mut ledger) = (Totals::default(), Ledger::default());
    for (number, (ahead, name)) in (0..).zip(ROUNDS) {
        clock.set_millis(ahead);
        instance.site.ahead_ms.store(ahead, Ordering::Relaxed);
        let seed = episode.seed.wrapping_add(number);
        let load = Load::start(&instance, name, seed);
        match instance.wait_until_accepting(Instant::now()).await {
            Some(time) => totals.recovery.push(time),
            None => totals.violated(format!("{name}: the instance does not accept events")),
        }
        if !load.progress(episode.requests).await {
            totals.violated(format!("{name}: the load makes no progress"));
        }
        tokio::time::sleep(episode.load.max(HOLD_MIN)).await;
        ledger.add(load.stop().await);
        println!("{engine:?}: {name}, {} acknowledged", ledger.requests);
        totals.rounds += 1;
    }
    let ends = DeliveryEnds::DeliveredIf("right-");
    check_with(&mut instance, ledger, ends, &mut totals).await;
    totals
}

/// Shifts the clock once per round, in every second round with a smear.
pub async fn clock_steps(engine: Engine, episode: Episode) -> Totals {
    let clock = ClockShift::new();
    let settings = clock
        .settings()
        .map(|(name, value)| (name.to_owned(), value));
    let mut instance = Instance::start_with(engine, 1, settings.to_vec()).await;
    let (mut totals, mut ledger) = (Totals::default(), Ledger::default());
    let mut random = ChaCha8Rng::seed_from_u64(episode.seed);
    let mut shift = 0;
    for round in 0..episode.rounds {
        let load = Load::start(
            &instance,
            &format!("r{round}"),
            episode.seed.wrapping_add(round),
        );
        if !load.progress(episode.requests).await {
            totals.violated(format!("round {round}: the load makes no progress"));
        }
        if round % 2 == 0 {
            shift = random.random_range(-STEP_MAX..=STEP_MAX);
            clock.set_millis(shift);
        } else {
            for step in 1..=SMEAR_STEPS {
                clock.set_millis(shift - step * 1_000 / SMEAR_STEPS);
                tokio::time::sleep(SMEAR_PAUSE).await;
            }
            shift -= 1_000;
        }
        let since = Instant::now();
        match instance.wait_until_accepting(since).await {
            Some(time) => totals.recovery.push(time),
            None => totals.violated(format!("the instance does not accept events at {shift} ms")),
        }
        tokio::time::sleep(episode.load).await;
        ledger.add(load.stop().await);
        totals.rounds += 1;
    }
    clock.set_millis(0);
    check(&mut instance, ledger, &mut totals).await;
    totals
}
