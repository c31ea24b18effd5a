//! A clock that is corrected in steps, repeats a second and is smeared, under load.
//!
//! The steps are smaller than what the networks tolerate, so that everything is delivered. A clock that
//! is a day off is not part of it, because the networks reject what such a
//! clock dates.

use super::Episode;
use crate::account::Totals;
use crate::check::check;
use crate::instance::Instance;
use crate::load::{Ledger, Load};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::time::{Duration, Instant};
use tributary_testkit::{ClockShift, Engine};

/// Steps of the clock in milliseconds: less than the minute that networks tolerate, in both directions.
const STEP_MAX: i64 = 20_000;
/// Steps of a smeared second. Real smears take a day.
const SMEAR_STEPS: i64 = 20;
const SMEAR_PAUSE: Duration = Duration::from_millis(20);

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
