// Queueing and sending of events, with a fake clock and network.

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

test("the promise waits for an asynchronous storage", async () => {
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
  bench.network.mode = "offline";
  void bench.configure();
  const id = await bench.sdk.trackEvent("a", { x: 1 });
  assert.ok([...inner.keys()].some((key) => key.endsWith(id!)));
  bench.network.mode = "fine";
  assert.equal(await bench.sdk.flush(), true);
  assert.deepEqual(bench.network.batches, [["a"]]);
});

test("buffers calls made before configure, and keeps their order and times", async () => {
  const bench = new Bench();
  const before = Date.now();
  void bench.sdk.trackEvent("first");
  void bench.sdk.setUserId("u1");
  void bench.sdk.trackEvent("second");
  bench.clock.set(3_600_000);
  await bench.configure();
  await bench.clock.pass(2_000);
  assert.deepEqual(
    bench.network.requests.map(({ endpoint }) => endpoint),
    ["configure", "events", "identify", "events"],
  );
  assert.deepEqual(bench.network.batches, [["first"], ["second"]]);
  const sent = bench.network.requests[1]!.body.events as unknown as { timestampMs: number }[];
  assert.ok(Math.abs(sent[0]!.timestampMs - before) < 5_000);
});

test("sends batches of at most 100 events in order", async () => {
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

test("events in the same millisecond get increasing times", async () => {
  const bench = new Bench();
  await bench.configure();
  for (const name of names(150)) void bench.sdk.trackEvent(name);
  await bench.clock.pass(1_000);
  const times = bench.network.requests.flatMap(({ body }) => (body.events ?? []) as unknown as { timestampMs: number }[]);
  times.forEach(({ timestampMs }, i) => assert.ok(i === 0 || timestampMs > times[i - 1]!.timestampMs));
});

test("retries with the same ids and increasing delays", async () => {
  const bench = new Bench();
  await bench.configure();
  await bench.clock.pass(0);
  bench.network.mode = "offline";
  const id = await bench.sdk.trackEvent("a");
  await bench.clock.pass(3_600_000);
  const tries = bench.network.count("events");
  assert.ok(tries > 10 && tries < 30, String(tries));
  bench.network.mode = "fine";
  await bench.clock.pass(300_000);
  assert.equal(bench.stored("q.").length, 0);
  assert.ok(bench.network.requests.flatMap(({ body }) => body.events ?? []).every(({ eventId }) => eventId === id));
  const after = bench.network.requests.length;
  await bench.clock.pass(600_000);
  assert.equal(bench.network.requests.length, after, "no requests while the queue is empty");
});

test("a new event does not shorten the back-off, but flush does", async () => {
  const bench = new Bench();
  await bench.configure();
  await bench.clock.pass(0);
  bench.network.mode = "offline";
  void bench.sdk.trackEvent("a");
  await bench.clock.pass(60_000);
  const tries = bench.network.count("events");
  void bench.sdk.trackEvent("b");
  await bench.clock.pass(1_500);
  assert.equal(bench.network.count("events"), tries);
  bench.network.mode = "fine";
  assert.equal(await bench.sdk.flush(), true);
});

test("a full queue drops the oldest events without revenue first", async () => {
  const bench = new Bench({ queueLimit: 4 });
  bench.network.mode = "offline";
  await bench.configure();
  void bench.sdk.trackEvent("paid1", { revenue: 1, currency: "EUR" });
  for (const name of names(3)) void bench.sdk.trackEvent(name);
  void bench.sdk.trackEvent("paid2", { revenue: 2, currency: "EUR" });
  void bench.sdk.trackEvent("e4");
  assert.deepEqual(bench.codes, ["queue_full", "queue_full"]);
  for (const name of ["paid3", "paid4", "paid5"]) void bench.sdk.trackEvent(name, { revenue: 3, currency: "EUR" });
  bench.network.mode = "fine";
  await bench.clock.pass(10_000);
  assert.deepEqual(bench.network.batches, [["paid2", "paid3", "paid4", "paid5"]]);
});

test("a full or disabled storage loses nothing while the app runs", async () => {
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
  bench.network.mode = "offline";
  await bench.configure();
  for (const name of names(3)) void bench.sdk.trackEvent(name);
  bench.network.mode = "fine";
  await bench.clock.pass(10_000);
  assert.deepEqual(bench.network.batches.flat(), names(3));
  assert.ok(bench.codes.includes("storage_failed"));
});

test("shutdown keeps the queue for the next configure", async () => {
  const bench = new Bench();
  bench.network.mode = "offline";
  await bench.configure();
  void bench.sdk.trackEvent("a");
  await bench.sdk.shutdown();
  const requestCount = bench.network.requests.length;
  await bench.clock.pass(3_600_000);
  assert.equal(bench.network.requests.length, requestCount);
  bench.network.mode = "fine";
  void bench.sdk.trackEvent("b");
  await bench.configure();
  await bench.clock.pass(1_000);
  assert.deepEqual(bench.network.batches.flat(), ["a", "b"]);
});

test("leaves out invalid values, reports them, and sends the event", async () => {
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
  const sent = bench.network.requests.flatMap(({ body }) => body.events ?? []) as unknown as Record<string, unknown>[];
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

test("sends a custom event id, and replaces and reports an invalid one", async () => {
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
  const sent = bench.network.requests.flatMap(({ body }) => body.events ?? []) as unknown as { eventId: string }[];
  assert.equal(sent.length, 6);
  assert.equal(sent[0]!.eventId, "order.1001");
});

test("a throwing callback does not affect the SDK", async () => {
  const bench = new Bench();
  const original = console.error;
  console.error = () => undefined;
  try {
    await bench.configure({
      onAttribution: () => {
        throw new Error("app error");
      },
    });
    void bench.sdk.trackEvent("a");
    await bench.clock.pass(1_000);
  } finally {
    console.error = original;
  }
  assert.deepEqual(bench.network.batches, [["a"]]);
});
