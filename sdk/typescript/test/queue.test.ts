// The queue and when it is sent, with time and network in the test's hands.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Bench } from "./support/sdk";

const names = (count: number): string[] => Array.from({ length: count }, (_, i) => `e${i + 1}`);

test("an event is stored before the call returns", () => {
  const bench = new Bench();
  void bench.configure();
  void bench.sdk.trackEvent("a");
  assert.equal(bench.stored("q.").length, 1);
});

test("with a storage that takes its time, the promise waits for it", async () => {
  const inner = new Map<string, string>();
  const slow = <T>(value: T): Promise<T> => new Promise((done) => setTimeout(() => done(value), 2));
  const bench = new Bench({
    storage: {
      get: (key) => slow(inner.get(key) ?? null),
      set: async (key, value) => void (await slow(0), inner.set(key, value)),
      remove: async (key) => void (await slow(0), inner.delete(key)),
      keys: () => slow([...inner.keys()]),
    },
  });
  bench.network.mood = "offline";
  void bench.configure();
  const id = await bench.sdk.trackEvent("a", { x: 1 });
  assert.ok([...inner.keys()].some((key) => key.endsWith(id!)));
  bench.network.mood = "fine";
  assert.equal(await bench.sdk.flush(), true);
  assert.deepEqual(bench.network.batches, [["a"]]);
});

test("calls before configure are kept, in order and with their times", async () => {
  const bench = new Bench();
  const before = Date.now();
  void bench.sdk.trackEvent("first");
  void bench.sdk.setUserId("u1");
  void bench.sdk.trackEvent("second");
  bench.clock.set(3_600_000);
  await bench.configure();
  await bench.clock.pass(2_000);
  assert.deepEqual(
    bench.network.asked.map(({ door }) => door),
    ["configure", "events", "identify", "events"],
  );
  assert.deepEqual(bench.network.batches, [["first"], ["second"]]);
  const sent = bench.network.asked[1]!.body.events as unknown as { timestampMs: number }[];
  assert.ok(Math.abs(sent[0]!.timestampMs - before) < 5_000);
});

test("batches have at most a hundred events, in order", async () => {
  const bench = new Bench();
  await bench.configure();
  for (const name of names(250)) void bench.sdk.trackEvent(name);
  await bench.clock.pass(1_000);
  assert.deepEqual(
    bench.network.batches.map((batch) => batch.length),
    [100, 100, 50],
  );
  assert.deepEqual(bench.network.batches.flat(), names(250));
  assert.equal(bench.stored("q.").length, 0);
});

test("events of one moment get later and later times", async () => {
  const bench = new Bench();
  await bench.configure();
  for (const name of names(150)) void bench.sdk.trackEvent(name);
  await bench.clock.pass(1_000);
  const times = bench.network.asked.flatMap(({ body }) => (body.events ?? []) as unknown as { timestampMs: number }[]);
  times.forEach(({ timestampMs }, i) => assert.ok(i === 0 || timestampMs > times[i - 1]!.timestampMs));
});

test("after a failure the same ids go out again, ever more seldom", async () => {
  const bench = new Bench();
  await bench.configure();
  await bench.clock.pass(0);
  bench.network.mood = "offline";
  const id = await bench.sdk.trackEvent("a");
  await bench.clock.pass(3_600_000);
  const tries = bench.network.count("events");
  assert.ok(tries > 10 && tries < 30, String(tries));
  bench.network.mood = "fine";
  await bench.clock.pass(300_000);
  assert.equal(bench.stored("q.").length, 0);
  assert.ok(bench.network.asked.flatMap(({ body }) => body.events ?? []).every(({ eventId }) => eventId === id));
  const after = bench.network.asked.length;
  await bench.clock.pass(600_000);
  assert.equal(bench.network.asked.length, after, "nothing is sent when nothing is left");
});

test("a new event does not cut a pause short; flush does", async () => {
  const bench = new Bench();
  await bench.configure();
  await bench.clock.pass(0);
  bench.network.mood = "offline";
  void bench.sdk.trackEvent("a");
  await bench.clock.pass(60_000);
  const tries = bench.network.count("events");
  void bench.sdk.trackEvent("b");
  await bench.clock.pass(1_500);
  assert.equal(bench.network.count("events"), tries);
  bench.network.mood = "fine";
  assert.equal(await bench.sdk.flush(), true);
});

test("a full queue drops the oldest events without money first", async () => {
  const bench = new Bench({ queueLimit: 4 });
  bench.network.mood = "offline";
  await bench.configure();
  void bench.sdk.trackEvent("paid1", { revenue: 1, currency: "EUR" });
  for (const name of names(3)) void bench.sdk.trackEvent(name);
  void bench.sdk.trackEvent("paid2", { revenue: 2, currency: "EUR" });
  void bench.sdk.trackEvent("e4");
  assert.deepEqual(bench.codes, ["queue_full", "queue_full"]);
  for (const name of ["paid3", "paid4", "paid5"]) void bench.sdk.trackEvent(name, { revenue: 3, currency: "EUR" });
  bench.network.mood = "fine";
  await bench.clock.pass(10_000);
  assert.deepEqual(bench.network.batches, [["paid2", "paid3", "paid4", "paid5"]]);
});

test("a storage that is full or forbidden loses nothing while the app runs", async () => {
  const bench = new Bench({
    storage: {
      get: () => null,
      set: () => {
        throw new Error("QuotaExceededError");
      },
      remove: () => undefined,
      keys: () => [],
    },
  });
  bench.network.mood = "offline";
  await bench.configure();
  for (const name of names(3)) void bench.sdk.trackEvent(name);
  bench.network.mood = "fine";
  await bench.clock.pass(10_000);
  assert.deepEqual(bench.network.batches.flat(), names(3));
  assert.ok(bench.codes.includes("storage_failed"));
});

test("shutdown keeps the queue for the next configure", async () => {
  const bench = new Bench();
  bench.network.mood = "offline";
  await bench.configure();
  void bench.sdk.trackEvent("a");
  await bench.sdk.shutdown();
  const asked = bench.network.asked.length;
  await bench.clock.pass(3_600_000);
  assert.equal(bench.network.asked.length, asked);
  bench.network.mood = "fine";
  void bench.sdk.trackEvent("b");
  await bench.configure();
  await bench.clock.pass(1_000);
  assert.deepEqual(bench.network.batches.flat(), ["a", "b"]);
});

test("what cannot be read is left out, and told; the event stays", async () => {
  const bench = new Bench();
  await bench.configure();
  const cycle: Record<string, unknown> = {};
  cycle["self"] = cycle;
  assert.equal(await bench.sdk.trackEvent(""), null);
  void bench.sdk.trackEvent("comma", { revenue: "9,99", currency: "EUR" });
  void bench.sdk.trackEvent("euro", { revenue: 5, currency: "Euro" });
  void bench.sdk.trackEvent("cycle", { cycle });
  void bench.sdk.trackEvent("long", { text: "x".repeat(17_000) });
  void bench.sdk.trackEvent("x".repeat(300));
  await bench.clock.pass(1_000);
  assert.deepEqual(bench.codes, [
    "invalid_name",
    "invalid_revenue",
    "invalid_currency",
    "invalid_params",
    "invalid_params",
  ]);
  const sent = bench.network.asked.flatMap(({ body }) => body.events ?? []) as unknown as Record<string, unknown>[];
  assert.deepEqual(
    sent.map(({ revenue, currency, params }) => [revenue, currency, params]),
    [
      [undefined, "EUR", undefined],
      ["5", undefined, undefined],
      [undefined, undefined, undefined],
      [undefined, undefined, undefined],
      [undefined, undefined, undefined],
    ],
  );
  assert.equal((sent[4]!["name"] as string).length, 255);
});

test("an id of the app's own is sent; one that cannot be an id is replaced, and told", async () => {
  const bench = new Bench();
  await bench.configure();
  assert.equal(await bench.sdk.trackEvent("purchase", { revenue: 5 }, { eventId: "order.1001" }), "order.1001");
  assert.equal(await bench.sdk.trackEvent("purchase", undefined, { eventId: "ä".repeat(127) }), "ä".repeat(127));
  for (const eventId of ["", "a\0b", "ä".repeat(128), 7 as unknown as string]) {
    const id = await bench.sdk.trackEvent("purchase", undefined, { eventId });
    assert.match(id!, /^[0-9a-f-]{36}$/);
  }
  await bench.clock.pass(1_000);
  assert.deepEqual(bench.codes, Array(4).fill("invalid_event_id"));
  const sent = bench.network.asked.flatMap(({ body }) => body.events ?? []) as unknown as { eventId: string }[];
  assert.equal(sent.length, 6);
  assert.equal(sent[0]!.eventId, "order.1001");
});

test("a callback that throws harms nobody", async () => {
  const bench = new Bench();
  const said = console.error;
  console.error = () => undefined;
  try {
    await bench.configure({
      onAttribution: () => {
        throw new Error("of the app");
      },
    });
    void bench.sdk.trackEvent("a");
    await bench.clock.pass(1_000);
  } finally {
    console.error = said;
  }
  assert.deepEqual(bench.network.batches, [["a"]]);
});
