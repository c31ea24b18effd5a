//! A disk that is full, read-only, failing or slow for some seconds, and then works again. The server
//! keeps running: reads, pages and redirects work, writes get 503, and it recovers by itself.

use super::Episode;
use crate::account::Totals;
use crate::check::check;
use crate::instance::Instance;
use crate::load::{Ledger, Load};
use crate::power::{DiskCondition, DiskFaults, DurableDisk, PowerLibrary, injected};
use crate::site::PHONE;
use std::time::{Duration, Instant};
use tributary_testkit::Engine;

/// The conditions in turn.
const CONDITIONS: [DiskCondition; 4] = [
    DiskCondition::Full,
    DiskCondition::ReadOnly,
    DiskCondition::Slow(1_500),
    DiskCondition::Broken,
];
/// How long a condition lasts at least.
const CONDITION_MIN: Duration = Duration::from_millis(1_500);
/// Longest wait until a condition takes effect.
const EFFECT_MAX: Duration = Duration::from_secs(20);

/// Pause between two looks at the log.
const EFFECT_PAUSE: Duration = Duration::from_millis(20);

/// Injects one condition per round.
pub async fn disk_conditions(episode: Episode) -> Totals {
    let library = PowerLibrary::compile();
    let mut instance = Instance::start(Engine::Sqlite, 1).await;
    instance.kill(0);
    let disk = DurableDisk::of(&instance);
    let live = instance.database.folder();
    let settings = disk.settings(&library, &live, &DiskFaults::default());
    let started = instance.try_restart(0, &settings).await;
    started.unwrap_or_else(|exit| panic!("{exit}"));
    let (mut totals, mut ledger) = (Totals::default(), Ledger::default());
    for round in 0..episode.rounds.max(CONDITIONS.len() as u64) {
        let load = Load::start(
            &instance,
            &format!("r{round}"),
            episode.seed.wrapping_add(round),
        );
        if !load.progress(episode.requests).await {
            totals.violated(format!("round {round}: the load makes no progress"));
        }
        let condition = CONDITIONS[usize::try_from(round).unwrap() % CONDITIONS.len()];
        let before = injected(&instance.node(0).log());
        let begun = Instant::now();
        disk.set(Some(condition));
        while injected(&instance.node(0).log()) == before {
            if begun.elapsed() > EFFECT_MAX {
                totals.violated(format!("{condition:?} had no effect"));
                break;
            }
            // The load runs on the same threads.
            tokio::time::sleep(EFFECT_PAUSE).await;
        }
        check_reads(&instance, condition, &mut totals).await;
        tokio::time::sleep(CONDITION_MIN.saturating_sub(begun.elapsed())).await;
        disk.set(None);
        let since = Instant::now();
        match instance.wait_until_accepting(since).await {
            Some(time) => totals.recovery.push(time),
            None => totals.violated(format!("the instance does not recover from {condition:?}")),
        }
        ledger.add(load.stop().await);
        totals.rounds += 1;
    }
    check(&mut instance, ledger, &mut totals).await;
    totals
}

/// Checks that reports, pages and redirects still work.
async fn check_reads(instance: &Instance, condition: DiskCondition, totals: &mut Totals) {
    let (site, base) = (&instance.site, instance.addresses.next());
    let stats = site.call(&base, "GET", "/stats?groupBy=day", None).await;
    let events = site.call(&base, "GET", "/events?limit=5", None).await;
    for (path, answer) in [("/stats", stats), ("/events", events)] {
        if answer.as_ref().map(|(status, _)| *status) != Some(200) {
            totals.wrong_answers += 1;
            totals.violated(format!("{condition:?}: {path}: {answer:?}"));
        }
    }
    let link = format!("{base}/w/{}", site.funnel);
    for (url, expected) in [
        (format!("{base}/healthz"), 200),
        (format!("{base}/sign-in"), 200),
        (link, 302),
    ] {
        let answer = site
            .client
            .get(&url)
            .header("user-agent", PHONE)
            .send()
            .await;
        let status = answer.map(|answer| answer.status().as_u16()).ok();
        if status != Some(expected) {
            totals.wrong_answers += 1;
            totals.violated(format!("{condition:?}: {url}: {status:?}"));
        }
    }
}
