// Consent: every event carries the consent in force when it was tracked, whatever happens in between.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Tributary } from "../src/advanced";
import { memoryStorage } from "../src/storage";
import type { Consent, HttpAnswer } from "../src/types";
import { FakeClock } from "./support/clock";
import { acceptAll, answer, Network, type NetworkMode, type RecordedRequest } from "./support/network";
import { Bench } from "./support/sdk";
import { slowStorage } from "./support/slow";

interface SentEvent {
  eventId: string;
  name: string;
  consent: Consent;
}

const sentEvents = (requests: RecordedRequest[]): SentEvent[] =>
  requests.flatMap(({ body }) => (body.events ?? []) as unknown as SentEvent[]);

const configureConsents = (bench: Bench): unknown[] =>
  bench.network.requests.filter(({ endpoint }) => endpoint === "configure").map(({ body }) => body["consent"]);

test("an event carries the consent in force when it was tracked", async () => {
  const bench = new Bench();
  await bench.configure();
  void bench.sdk.trackEvent("never asked");
  void bench.sdk.setConsent({ adUserData: false, tracking: null });
  void bench.sdk.trackEvent("refused");
  void bench.sdk.setConsent({ adUserData: true, adPersonalization: true });
  void bench.sdk.trackEvent("granted");
  await bench.clock.pass(1_000);
  assert.deepEqual(
    sentEvents(bench.network.requests).map(({ name, consent }) => [name, consent]),
    [
      ["never asked", {}],
      ["refused", { adUserData: false }],
      ["granted", { adUserData: true, adPersonalization: true }],
    ],
  );
});

test("a purchase does not overtake a refusal while configure is slow", async () => {
  const bench = new Bench();
  const release: ((answer: HttpAnswer) => void)[] = [];
  const { fetch } = bench.network;
  let isSlow = true;
  await bench.configure({
    fetch: (url, request) =>
      isSlow && url.endsWith("configure")
        ? new Promise((done) => void fetch(url, request).then((made) => release.push(() => done(made))))
        : fetch(url, request),
  });
  await bench.clock.pass(0);
  void bench.sdk.setConsent({ adUserData: false });
  void bench.sdk.trackEvent("purchase", { revenue: 5, currency: "EUR" });
  await bench.clock.pass(2_000);
  isSlow = false;
  release.forEach((done) => done(answer(200, "")));
  await bench.clock.pass(2_000);
  assert.deepEqual(
    bench.network.requests.map(({ endpoint }) => endpoint),
    ["configure", "configure", "events"],
  );
  assert.deepEqual(configureConsents(bench), [{}, { adUserData: false }]);
  assert.deepEqual(sentEvents(bench.network.requests)[0]!.consent, { adUserData: false });
});

test("consent can be set before configure and as an option of configure", async () => {
  const bench = new Bench();
  void bench.sdk.setConsent({ adUserData: false });
  void bench.sdk.trackEvent("before");
  await bench.configure({ consent: { adPersonalization: false } });
  void bench.sdk.trackEvent("after");
  await bench.clock.pass(1_000);
  const both = { adUserData: false, adPersonalization: false };
  assert.deepEqual(configureConsents(bench), [both]);
  assert.deepEqual(
    sentEvents(bench.network.requests).map(({ consent }) => consent),
    [{ adUserData: false }, both],
  );
});

test("more than 1,000 buffered events drop no consent", async () => {
  const bench = new Bench({ queueLimit: 2_000 });
  void bench.sdk.setConsent({ adUserData: false });
  const first = bench.sdk.trackEvent("first");
  for (let n = 0; n < 1_000; n++) void bench.sdk.trackEvent("later");
  assert.equal(await first, null);
  await bench.configure();
  await bench.clock.pass(1_000);
  const sent = sentEvents(bench.network.requests);
  assert.equal(sent.length, 999);
  assert.ok(sent.every(({ name, consent }) => name === "later" && consent.adUserData === false));
});

test("nothing overtakes a refusal that the server has not confirmed, even after a restart", async () => {
  const bench = new Bench();
  await bench.configure({ consent: { adUserData: true } });
  await bench.clock.pass(0);
  bench.network.respond = (request) =>
    request.endpoint === "configure" ? answer(503, "{}") : acceptAll(request);
  void bench.sdk.trackEvent("granted");
  void bench.sdk.setConsent({ adUserData: false });
  await bench.clock.pass(3_600_000);
  await bench.restart();
  await bench.clock.pass(3_600_000);
  assert.deepEqual(bench.network.batches, []);
  bench.network.respond = acceptAll;
  await bench.clock.pass(300_000);
  assert.deepEqual(bench.network.batches, [["granted"]]);
  assert.deepEqual(configureConsents(bench).pop(), { adUserData: false });
});

test("a refusal in one tab holds for events of another tab", async () => {
  for (const isSynchronous of [true, false]) {
    const bench = new Bench({ storage: { ...(isSynchronous ? memoryStorage() : slowStorage()), shared: true } });
    await bench.configure({ consent: { adUserData: true } });
    const first = bench.sdk;
    bench.sdk = new Tributary();
    await bench.configure();
    await bench.sdk.setConsent({ adUserData: false });
    await first.trackEvent("other tab");
    await bench.clock.pass(60_000);
    const [event] = sentEvents(bench.network.requests);
    assert.deepEqual(event!.consent, { adUserData: false }, `synchronous: ${isSynchronous}`);
  }
});

test("an asynchronous shared storage keeps the order of the calls", async () => {
  const bench = new Bench({ storage: { ...slowStorage(), shared: true } });
  void bench.configure();
  void bench.sdk.trackEvent("a");
  void bench.sdk.setUserId("u1");
  void bench.sdk.trackEvent("b");
  for (let n = 0; n < 10; n++) await bench.clock.pass(1_000);
  assert.deepEqual(
    bench.network.requests.map(({ endpoint }) => endpoint),
    ["configure", "events", "identify", "events"],
  );
});

/** Returns a reproducible sequence of random numbers (mulberry32). */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const MODES: NetworkMode[] = ["fine", "fine", "offline", "lost", "portal", "busy"];

/** Plays a random sequence of calls against a random network, and checks what the server received. */
async function play(seed: number): Promise<void> {
  const next = random(seed);
  const pick = <T>(values: readonly T[]): T => values[Math.floor(next() * values.length)]!;
  const storage = next() < 0.3 ? slowStorage() : memoryStorage();
  const requests: RecordedRequest[] = [];
  const received = new Map<string, string>();
  /** What each recorded event must carry. */
  const expected = new Map<string, Consent>();
  let consent: Consent = {};
  let unsettled: Promise<unknown>[] = [];
  let clock = new FakeClock();
  let network = new Network();
  let sdk = new Tributary();
  let isConfigured = false;

  const serve = (request: RecordedRequest): HttpAnswer => {
    for (const event of (request.body.events ?? []) as unknown as SentEvent[]) {
      const bytes = JSON.stringify(event);
      assert.equal(received.get(event.eventId) ?? bytes, bytes, "an event is resent byte for byte");
      received.set(event.eventId, bytes);
    }
    if (request.endpoint === "configure" && network.mode === "fine" && next() < 0.2) return answer(500, "{}");
    return acceptAll(request);
  };
  const begin = (): void => {
    network = new Network();
    network.respond = serve;
    network.mode = pick(MODES);
    const { fetch } = network;
    clock = new FakeClock(clock.now() + 1);
    sdk = new Tributary();
    isConfigured = false;
    slowFetch = (url, request) => {
      const delay = pick([0, 0, 3_000, 15_000]);
      requests.push({ endpoint: url, body: JSON.parse(request.body ?? "{}") as RecordedRequest["body"] });
      const ownClock = clock;
      return delay === 0
        ? fetch(url, request)
        : new Promise((done, failed) => void ownClock.setTimeout(() => fetch(url, request).then(done, failed), delay));
    };
  };
  let slowFetch: Network["fetch"] = network.fetch;
  const grant = (): Consent => ({ [pick(["adUserData", "adPersonalization"])]: next() < 0.5 });
  const configure = (): void => {
    const given = next() < 0.4 ? grant() : undefined;
    if (!isConfigured && given) consent = { ...consent, ...given };
    isConfigured = true;
    const common = { key: "pk_live_test", baseUrl: "http://127.0.0.1:9", logLevel: "none" } as const;
    const device = { platform: "android" } as const;
    const options = { ...common, device, storage, clock, fetch: slowFetch };
    unsettled.push(sdk.configure({ ...options, ...(given && { consent: given }) }));
  };
  const steps: Record<string, () => unknown> = {
    configure,
    track: () => {
      const inForce = { ...consent };
      unsettled.push(sdk.trackEvent("e").then((id) => id && expected.set(id, inForce)));
    },
    consent: () => {
      const given = grant();
      consent = { ...consent, ...given };
      unsettled.push(sdk.setConsent(given));
    },
    flush: () => void sdk.flush(),
    network: () => (network.mode = pick(MODES)),
    pass: () => clock.pass(pick([0, 100, 1_000, 5_000, 400_000])),
    restart: async () => {
      // Calls before `configure` are lost with the process; the test must not depend on them.
      if (!isConfigured) configure();
      await clock.pass(0);
      await Promise.all(unsettled);
      unsettled = [];
      // A kill leaves requests in flight; a shutdown waits for them.
      if (next() < 0.5) void sdk.shutdown();
      begin();
    },
  };
  begin();
  const names = ["configure", "track", "track", "track", "consent", "consent", "flush", "network", "pass", "restart"];
  for (let step = 0; step < 25; step++) await steps[pick(names)]!();
  if (!isConfigured) configure();
  network.mode = "fine";
  await clock.pass(0);
  await Promise.all(unsettled);
  for (let round = 0; round < 40 && expected.size > received.size; round++) await clock.pass(300_000);
  assert.deepEqual([...received.keys()].sort(), [...expected.keys()].sort(), "every event arrives, and no other");
  for (const [id, carried] of expected) assert.deepEqual((JSON.parse(received.get(id)!) as SentEvent).consent, carried);
}

test("1,000 random interleavings: no event lacks a refusal, is lost or is doubled", async () => {
  const start = Number(process.env["TRIBUTARY_SEED"] ?? 1);
  const count = process.env["TRIBUTARY_SEED"] ? 1 : 1_000;
  for (let seed = start; seed < start + count; seed++) {
    try {
      await play(seed);
    } catch (error) {
      console.error(`failed with TRIBUTARY_SEED=${seed}`);
      throw error;
    }
  }
});
