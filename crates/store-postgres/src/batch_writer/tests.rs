use super::*;
use tokio::sync::{Notify, Semaphore};
use tributary_domain::refusal::Refusal;

/// An item with a greater number writes several rows: as many as its number exceeds this constant.
const WIDE: u32 = 100_000;

impl BatchItem for u32 {
    fn shard_key(&self) -> ShardKey {
        ShardKey::Name(self.to_string())
    }

    fn rows(&self) -> usize {
        usize::try_from(self.saturating_sub(WIDE).max(1)).unwrap()
    }
}

/// The batches that were written. Item 0 is refused, item 1 panics, and item 2 conflicts unless it
/// is alone.
struct Written {
    batches: Mutex<Vec<Vec<u32>>>,
    gate: Semaphore,
}

fn start(open: bool) -> (Arc<BatchWriter<u32, u32>>, Arc<Written>) {
    start_concurrent(open, 1)
}

fn start_concurrent(open: bool, at_a_time: usize) -> (Arc<BatchWriter<u32, u32>>, Arc<Written>) {
    let written = Arc::new(Written {
        batches: Mutex::default(),
        gate: Semaphore::new(if open { 1_000 } else { 0 }),
    });
    let log = written.clone();
    let batches = BatchWriter::start_concurrent("test", at_a_time, move |items: Arc<[u32]>| {
        let written = written.clone();
        async move {
            written.gate.acquire().await.unwrap().forget();
            assert!(!items.contains(&1), "a bug");
            if items.contains(&0) {
                return Err(Refusal::AppNotFound.into());
            }
            if items.contains(&2) && items.len() > 1 {
                return Err(StoreError::unavailable("test", DatabaseError::conflict()));
            }
            written.batches.lock().unwrap().push(items.to_vec());
            Ok(items.iter().map(|item| item * 2).collect())
        }
    });
    (Arc::new(batches), log)
}

fn write_all(
    batches: &Arc<BatchWriter<u32, u32>>,
    items: impl IntoIterator<Item = u32>,
) -> Vec<JoinHandle<StoreResult<u32>>> {
    let write = |item| {
        let batches = batches.clone();
        tokio::spawn(async move { batches.write(Lane::Shared, item).await })
    };
    items.into_iter().map(write).collect()
}

/// Yields until all spawned writers have queued their items.
async fn let_tasks_run() {
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn items_queued_during_a_batch_form_the_next_one() {
    let (batches, written) = start(false);
    let first = write_all(&batches, [10]);
    let_tasks_run().await;
    let others = write_all(&batches, 11..21);
    let_tasks_run().await;
    written.gate.add_permits(2);
    for (item, task) in (10..).zip(first.into_iter().chain(others)) {
        assert_eq!(task.await.unwrap().unwrap(), item * 2);
    }
    let sizes: Vec<usize> = written
        .batches
        .lock()
        .unwrap()
        .iter()
        .map(Vec::len)
        .collect();
    assert_eq!(sizes, [1, 10]);
}

#[tokio::test]
async fn starts_a_second_batch_once_enough_items_wait() {
    let (batches, written) = start_concurrent(false, 2);
    let few = u32::try_from(SECOND_BATCH_ITEMS_MIN).unwrap() - 1;
    let mut tasks = write_all(&batches, [10]);
    let_tasks_run().await;
    tasks.extend(write_all(&batches, 11..11 + few));
    let_tasks_run().await;
    tasks.extend(write_all(&batches, [100]));
    let_tasks_run().await;
    // Two batches are already running, so these items wait for one of them to end.
    tasks.extend(write_all(&batches, [200, 201]));
    let_tasks_run().await;
    written.gate.add_permits(3);
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    batches.close().await;
    let mut sizes: Vec<usize> = written
        .batches
        .lock()
        .unwrap()
        .iter()
        .map(Vec::len)
        .collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 2, SECOND_BATCH_ITEMS_MIN]);
}

#[tokio::test]
async fn limits_the_rows_of_a_batch_and_keeps_the_order() {
    let (batches, written) = start(false);
    let most = u32::try_from(BATCH_ROWS_MAX).unwrap();
    let first = write_all(&batches, [10]);
    let_tasks_run().await;
    // The third item has one row too many for the second batch; the fourth is too large for any
    // batch.
    let wide = [most - 1, 1, 1, most * 2, 1].map(|rows| WIDE + rows);
    let others = write_all(&batches, wide);
    let_tasks_run().await;
    written.gate.add_permits(10);
    for task in first.into_iter().chain(others) {
        task.await.unwrap().unwrap();
    }
    let [one, two, three, four, five] = wide;
    let expected = [
        vec![10],
        vec![one, two],
        vec![three],
        vec![four],
        vec![five],
    ];
    assert_eq!(*written.batches.lock().unwrap(), expected);
}

#[tokio::test]
async fn writes_items_one_by_one_after_repeated_conflicts() {
    let (batches, written) = start(false);
    let first = write_all(&batches, [10]);
    let_tasks_run().await;
    let others = write_all(&batches, [5, 2, 6]);
    let_tasks_run().await;
    written.gate.add_permits(10);
    for (item, task) in [10, 5, 2, 6]
        .into_iter()
        .zip(first.into_iter().chain(others))
    {
        assert_eq!(task.await.unwrap().unwrap(), item * 2);
    }
    let expected = [[10], [5], [2], [6]];
    assert_eq!(*written.batches.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_bad_item_fails_alone() {
    let (batches, _written) = start(true);
    let tasks = write_all(&batches, [5, 0, 6]);
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.push(task.await.unwrap());
    }
    assert!(matches!(outcomes[0], Ok(10)) && matches!(outcomes[2], Ok(12)));
    let refused = StoreError::Refused(Refusal::AppNotFound).to_string();
    assert_eq!(outcomes[1].as_ref().unwrap_err().to_string(), refused);
}

#[tokio::test]
async fn a_panic_fails_only_its_batch() {
    let (batches, _written) = start(true);
    assert!(batches.write(Lane::Shared, 1).await.is_err());
    assert_eq!(batches.write(Lane::Shared, 3).await.unwrap(), 6);
}

#[tokio::test]
async fn a_full_queue_rejects_new_items_at_once() {
    let (batches, written) = start(false);
    let under_way = write_all(&batches, [10]);
    let_tasks_run().await;
    let most = u32::try_from(QUEUE_CHANGES_MAX).unwrap();
    let waiting = write_all(&batches, (0..most).map(|item| item + 2));
    let_tasks_run().await;
    let error = batches.write(Lane::Shared, 10).await.unwrap_err();
    assert!(
        format!("{error:?}").contains("too many queued changes"),
        "{error:?}"
    );
    written.gate.add_permits(1_000);
    for task in under_way.into_iter().chain(waiting) {
        task.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn closing_writes_the_queued_items() {
    let (batches, written) = start(false);
    let tasks = write_all(&batches, 10..20);
    let_tasks_run().await;
    let closed = Arc::new(Notify::new());
    let (closing, notify) = (batches.clone(), closed.clone());
    tokio::spawn(async move {
        closing.close().await;
        notify.notify_one();
    });
    let_tasks_run().await;
    assert!(
        batches.write(Lane::Shared, 30).await.is_err(),
        "new items are rejected"
    );
    written.gate.add_permits(10);
    closed.notified().await;
    for task in tasks {
        task.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn passes_items_without_a_result_again() {
    let parts = Arc::new(Mutex::new(Vec::new()));
    let log = parts.clone();
    let gate = Arc::new(Semaphore::new(0));
    let opened = gate.clone();
    // Writes the first and the third item of each part.
    let batches = BatchWriter::start_partial("test", 1, move |items: Arc<[u32]>| {
        let (log, gate) = (log.clone(), gate.clone());
        async move {
            gate.acquire().await.unwrap().forget();
            log.lock().unwrap().push(items.to_vec());
            let answer = |(index, item)| [0, 2].contains(&index).then_some(item * 2);
            Ok((0..).zip(items.iter()).map(answer).collect())
        }
    });
    let batches = Arc::new(batches);
    let first = write_all(&batches, [10]);
    let_tasks_run().await;
    let others = write_all(&batches, 11..19);
    let_tasks_run().await;
    opened.add_permits(10);
    for (item, task) in (10..).zip(first.into_iter().chain(others)) {
        assert_eq!(task.await.unwrap().unwrap(), item * 2);
    }
    // In order, and never more than twice as many items as the last write wrote.
    let expected = [
        vec![10],
        (11..19).collect(),
        vec![12, 14, 15, 16],
        vec![14, 16, 17, 18],
        vec![16, 18],
        vec![18],
    ];
    assert_eq!(*parts.lock().unwrap(), expected);
}

#[tokio::test]
async fn reports_a_write_without_results() {
    let batches = BatchWriter::<u32, u32>::start("test", async |_| Ok(Vec::new()));
    let error = batches.write(Lane::Shared, 5).await.unwrap_err();
    assert!(format!("{error:?}").contains("missing result"), "{error:?}");
}

/// A writer whose batches of shard 1 wait for `gate` and then fail while `is_down`. Returns the
/// written batches, too.
struct Shards {
    batches: Arc<BatchWriter<u32, u32>>,
    written: Arc<Mutex<Vec<Vec<u32>>>>,
    gate: Arc<Semaphore>,
    is_down: Arc<std::sync::atomic::AtomicBool>,
}

/// Items from here on are in shard 1.
const SHARD_1: u32 = 1_000;

fn start_shards() -> Shards {
    let written: Arc<Mutex<Vec<Vec<u32>>>> = Arc::default();
    let gate = Arc::new(Semaphore::new(0));
    let is_down = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let (log, waits, fails) = (written.clone(), gate.clone(), is_down.clone());
    let batches = BatchWriter::start("test", move |items: Arc<[u32]>| {
        let (log, waits, fails) = (log.clone(), waits.clone(), fails.clone());
        async move {
            if items.iter().any(|item| *item >= SHARD_1) {
                waits.acquire().await.unwrap().forget();
                if fails.load(std::sync::atomic::Ordering::SeqCst) {
                    return Err(StoreError::unavailable("test", "the worker is down"));
                }
            }
            log.lock().unwrap().push(items.to_vec());
            Ok(items.to_vec())
        }
    });
    Shards {
        batches: Arc::new(batches),
        written,
        gate,
        is_down,
    }
}

impl Shards {
    fn write(&self, shard: i64, items: std::ops::Range<u32>) -> Vec<JoinHandle<StoreResult<u32>>> {
        let write = |item| {
            let batches = self.batches.clone();
            tokio::spawn(async move { batches.write(Lane::Shard(shard), item).await })
        };
        items.map(write).collect()
    }
}

#[tokio::test]
async fn a_batch_has_items_of_one_shard() {
    let shards = start_shards();
    shards
        .is_down
        .store(false, std::sync::atomic::Ordering::SeqCst);
    let mut tasks = shards.write(0, 0..3);
    tasks.extend(shards.write(1, SHARD_1..SHARD_1 + 3));
    tasks.extend(shards.write(2, 10..13));
    let_tasks_run().await;
    shards.gate.add_permits(10);
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    let written = shards.written.lock().unwrap();
    let shard = |item: &u32| item / 10;
    for batch in written.iter() {
        assert!(batch.iter().all(|item| shard(item) == shard(&batch[0])));
    }
    assert_eq!(written.concat().len(), 9);
}

#[tokio::test]
async fn a_failing_shard_does_not_stop_the_others() {
    let shards = start_shards();
    let failing = shards.write(1, SHARD_1..SHARD_1 + 1);
    shards.gate.add_permits(1);
    for task in failing {
        assert!(task.await.unwrap().is_err());
    }
    // A batch waits for the worker; a whole batch waits behind it, and more are rejected at once.
    let under_way = shards.write(1, SHARD_1..SHARD_1 + 1);
    let_tasks_run().await;
    let most = u32::try_from(BATCH_ITEMS_MAX).unwrap();
    let waiting = shards.write(1, SHARD_1..SHARD_1 + most);
    let_tasks_run().await;
    let rejected = shards.batches.write(Lane::Shard(1), SHARD_1).await;
    assert!(format!("{rejected:?}").contains(QUEUE_FULL), "{rejected:?}");
    // Failing shards take turns; healthy ones are written meanwhile.
    let other_failing = shards.write(3, SHARD_1..SHARD_1 + 1);
    for task in shards.write(0, 0..5) {
        task.await.unwrap().unwrap();
    }
    shards
        .is_down
        .store(false, std::sync::atomic::Ordering::SeqCst);
    shards.gate.add_permits(1_000);
    for task in under_way.into_iter().chain(waiting).chain(other_failing) {
        task.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn failing_shards_take_turns() {
    let shards = start_shards();
    let lanes: std::ops::RangeInclusive<i64> = 1..=6;
    for lane in lanes.clone() {
        let failing = shards.write(lane, SHARD_1..SHARD_1 + 1);
        shards.gate.add_permits(1);
        for task in failing {
            assert!(task.await.unwrap().is_err());
        }
    }
    // All of them wait for the worker now, but with one batch at a time.
    let tasks: Vec<_> = lanes
        .flat_map(|lane| shards.write(lane, SHARD_1..SHARD_1 + 1))
        .collect();
    let_tasks_run().await;
    for task in shards.write(0, 0..5) {
        task.await.unwrap().unwrap();
    }
    shards.gate.add_permits(1_000);
    for task in tasks {
        assert!(task.await.unwrap().is_err());
    }
}

/// Items wait for a single server to come back, as many as the queue holds.
#[tokio::test]
async fn a_single_server_gets_all_items_after_a_failed_batch() {
    let shards = start_shards();
    let write = |item| {
        let batches = shards.batches.clone();
        tokio::spawn(async move { batches.write(Lane::Shared, item).await })
    };
    let failing = write(SHARD_1);
    shards.gate.add_permits(1);
    assert!(failing.await.unwrap().is_err());
    let most = u32::try_from(BATCH_ITEMS_MAX).unwrap();
    let waiting: Vec<_> = (SHARD_1..SHARD_1 + 2 * most).map(write).collect();
    let_tasks_run().await;
    shards
        .is_down
        .store(false, std::sync::atomic::Ordering::SeqCst);
    shards.gate.add_permits(1_000);
    for task in waiting {
        task.await.unwrap().unwrap();
    }
}

#[test]
fn a_slow_lane_rejects_further_items_until_a_batch_starts() {
    use tributary_store::waiting_line::QUEUE_WAIT_MAX;
    let places = Arc::new(Semaphore::new(QUEUE_CHANGES_MAX));
    let item = |queued_at| QueuedItem::<u32, u32> {
        item: SHARD_1,
        reply: oneshot::channel().0,
        queued_at,
        _place: places.clone().try_acquire_owned().unwrap(),
    };
    let begin = Instant::now();
    let late = begin + QUEUE_WAIT_MAX + Duration::from_millis(1);
    let mut lanes = lanes::Lanes::new(1);
    for _ in 0..BATCH_ITEMS_MAX {
        assert!(lanes.push(Lane::Shared, item(begin)).is_ok());
    }
    assert!(lanes.push(Lane::Shared, item(late)).is_err());
    assert!(lanes.push(Lane::Shard(1), item(late)).is_ok());
    let (_, batch) = lanes.start_batch().unwrap();
    assert_eq!(batch.len(), BATCH_ITEMS_MAX);
    assert!(lanes.push(Lane::Shared, item(late)).is_ok());
}
