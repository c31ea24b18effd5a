// What users may demand: optOut, optIn and reset.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Tributary } from "../src/advanced";
import { memoryStorage } from "../src/storage";
import type { Consent } from "../src/types";
import { REFUSED, endpoints, registered, tabs, to } from "./support/rights";
import { Bench } from "./support/sdk";
import { slowStorage } from "./support/slow";

test("optOut deletes the queue, tells the server once, and sends nothing more, even after a restart", async () => {
  const bench = await registered();
  const id = await bench.sdk.getDeviceId();
  void bench.sdk.setConsent({ tracking: "authorized" });
  void bench.sdk.trackEvent("unsent");
  await bench.sdk.optOut();
  assert.equal(bench.stored("q.").length, 0);
  await bench.clock.pass(10_000);
  const consent = { tracking: "authorized", ...REFUSED };
  assert.deepEqual(to(bench, "configure"), [{ deviceId: id, platform: "android", consent }]);
  assert.equal(await bench.sdk.trackEvent("not recorded"), null);
  await bench.sdk.setUserId("u1");
  await bench.sdk.setAdvancedMatching("joe@example.com", null);
  await bench.sdk.openUrl("https://x/c/1");
  await bench.sdk.setConsent({ tracking: "denied" });
  assert.equal((await bench.sdk.getAttribution())!.network, "organic");
  await bench.clock.pass(3_600_000);
  await bench.restart({ userId: "u1" });
  assert.equal(await bench.sdk.trackEvent("still not recorded"), null);
  await bench.clock.pass(3_600_000);
  assert.deepEqual(endpoints(bench), ["configure"]);
  assert.equal(bench.stored("q.").length, 0);
});

test("optIn resumes with the same device and the refusal, until the app sets the consent", async () => {
  const bench = await registered();
  const id = await bench.sdk.getDeviceId();
  await bench.sdk.optOut();
  await bench.clock.pass(10_000);
  await bench.restart();
  await bench.sdk.optIn();
  void bench.sdk.trackEvent("refused");
  void bench.sdk.setConsent({ adUserData: true, adPersonalization: true });
  void bench.sdk.trackEvent("granted");
  await bench.clock.pass(10_000);
  const [body] = to(bench, "events");
  assert.equal(body!.deviceId, id);
  assert.deepEqual(
    (body!.events as unknown as { name: string; consent: Consent }[]).map(({ name, consent }) => [name, consent]),
    [
      ["refused", REFUSED],
      ["granted", { adUserData: true, adPersonalization: true }],
    ],
  );
});

test("optOut is sent when the network is back, also after a restart", async () => {
  const bench = await registered();
  bench.network.mode = "offline";
  await bench.sdk.optOut();
  await bench.clock.pass(60_000);
  await bench.restart();
  await bench.clock.pass(60_000);
  bench.network.mode = "fine";
  bench.network.requests.length = 0;
  await bench.clock.pass(600_000);
  assert.deepEqual(
    bench.network.requests.map(({ endpoint, body }) => [endpoint, body["consent"]]),
    [["configure", REFUSED]],
  );
});

test("a device that opts out before the first request stays unknown to the server", async () => {
  const bench = new Bench();
  void bench.sdk.optOut();
  void bench.sdk.trackEvent("a");
  await bench.configure();
  await bench.clock.pass(600_000);
  await bench.sdk.eraseMe();
  await bench.clock.pass(600_000);
  assert.deepEqual(endpoints(bench), []);
});

test("opting out in one tab stops the other", async () => {
  const bench = await registered(new Bench({ storage: { ...memoryStorage(), shared: true } }));
  const first = bench.sdk;
  bench.sdk = new Tributary();
  await bench.configure();
  await bench.clock.pass(1_000);
  void first.trackEvent("unsent");
  await bench.sdk.optOut();
  assert.equal(await first.trackEvent("a"), null);
  await bench.clock.pass(60_000);
  assert.equal(bench.network.count("events"), 0);
  await bench.sdk.optIn();
  assert.ok(await first.trackEvent("b"));
  await bench.clock.pass(60_000);
  assert.deepEqual(bench.network.batches, [["b"]]);
});

test("reset makes a new device, and sends unsent entries under the earlier id, even after a restart", async () => {
  for (const restarts of [false, true]) {
    const bench = await registered();
    const before = await bench.sdk.getDeviceId();
    bench.network.mode = "offline";
    await bench.sdk.setConsent({ adUserData: true });
    void bench.sdk.setGlobalParams({ plan: "pro" });
    void bench.sdk.setUserId("u1");
    void bench.sdk.trackEvent("old");
    void bench.sdk.reset();
    void bench.sdk.setUserId("u1");
    void bench.sdk.trackEvent("new", { n: 1 });
    const after = await bench.sdk.getDeviceId();
    assert.notEqual(after, before);
    if (restarts) await bench.restart();
    bench.network.mode = "fine";
    bench.network.requests.length = 0;
    await bench.clock.pass(600_000);
    assert.deepEqual(
      bench.network.requests.map(({ endpoint, body }) => [endpoint, body.deviceId]),
      [
        ["identify", before],
        ["events", before],
        ["configure", after],
        ["identify", after],
        ["events", after],
      ],
      `restarts: ${restarts}`,
    );
    const [old, fresh] = to(bench, "events").map(({ events }) => events![0] as unknown as Record<string, unknown>);
    assert.deepEqual([old!["params"], old!["consent"]], [{ plan: "pro" }, { adUserData: true }]);
    assert.deepEqual([fresh!["params"], fresh!["consent"]], [{ n: 1 }, {}]);
    assert.deepEqual(bench.stored("past"), [], "the earlier id is deleted when it is not needed");
    assert.equal(await bench.sdk.getDeviceId(), after);
  }
});

test("reset forgets the attribution and does not send received install evidence again", async () => {
  const bench = new Bench();
  const providers = { installReferrer: () => ({ referrer: "utm_source=x" }) };
  await bench.configure({ providers, deviceId: "custom", userId: "u1" });
  await bench.clock.pass(0);
  assert.equal((await bench.sdk.getAttribution())!.network, "organic");
  bench.network.mode = "offline";
  await bench.sdk.reset();
  const waiting = bench.sdk.getAttribution(1_000);
  await bench.clock.pass(1_000);
  assert.equal(await waiting, null);
  bench.network.mode = "fine";
  await bench.clock.pass(60_000);
  const [first, ...rest] = to(bench, "configure");
  const last = rest.pop()!;
  assert.equal(first!.deviceId, "custom");
  assert.match(last.deviceId!, /^[0-9a-f-]{36}$/);
  assert.deepEqual([first!["installReferrer"], last["installReferrer"]], [{ referrer: "utm_source=x" }, undefined]);
  assert.notEqual(first!["eraseToken"], last["eraseToken"]);
  assert.deepEqual([first!["userId"], last["userId"]], ["u1", undefined]);
});

test("reset in one tab holds for the other: earlier events keep their device id", async () => {
  for (const sender of ["first", "second"] as const) {
    const { bench, ...sdks } = await tabs({ userId: "u1", flushDelayMs: 600_000 });
    const { first, second } = sdks;
    const before = await second.getDeviceId();
    bench.network.mode = "offline";
    void second.setGlobalParams({ plan: "pro" });
    void second.trackEvent("old");
    await first.reset();
    void sdks[sender === "first" ? "second" : "first"].shutdown();
    await bench.clock.pass(10_000);
    bench.network.mode = "fine";
    const sdk = sdks[sender];
    bench.network.requests.length = 0;
    const after = await sdk.getDeviceId();
    assert.notEqual(after, before);
    void sdk.trackEvent("new");
    void sdk.flush();
    await bench.clock.pass(600_000);
    const sent = bench.network.requests.map(({ endpoint, body }) => [endpoint, body.deviceId]);
    assert.deepEqual(
      sent,
      [
        ["events", before],
        ["configure", after],
        ["events", after],
      ],
      sender,
    );
    const [configured] = to(bench, "configure");
    assert.deepEqual([configured!["userId"], typeof configured!["eraseToken"]], [undefined, "string"]);
    const [, fresh] = to(bench, "events").map(({ events }) => events![0] as unknown as Record<string, unknown>);
    assert.deepEqual([fresh!["name"], fresh!["params"]], ["new", undefined]);
    assert.equal(JSON.parse(bench.storage.get("tributary.launch") as string).eraseTokenSent, true);
  }
});

test("a response for the earlier device changes nothing after reset in another tab", async () => {
  const { bench, first, second } = await tabs();
  const { respond } = bench.network;
  await second.setConsent({ adUserData: true });
  const before = await second.getDeviceId();
  bench.network.respond = (request) => {
    bench.network.respond = respond;
    void first.reset();
    return respond!(request);
  };
  await bench.clock.pass(10_000);
  const after = await second.getDeviceId();
  const bodies = to(bench, "configure");
  assert.deepEqual([bodies[0]!.deviceId, bodies[1]!.deviceId], [before, after]);
  assert.ok(bodies[1]!["eraseToken"]);
  assert.equal((await first.getAttribution(0))?.network, "organic");
});

test("a refusal goes ahead of the events that were queued before reset, even after a restart", async () => {
  for (const restarts of [false, true]) {
    const bench = new Bench();
    const granted = { adUserData: true, adPersonalization: true };
    await bench.configure({ consent: granted });
    await bench.clock.pass(0);
    const before = await bench.sdk.getDeviceId();
    bench.network.mode = "offline";
    void bench.sdk.trackEvent("old");
    void bench.sdk.setConsent(REFUSED);
    void bench.sdk.reset();
    const after = await bench.sdk.getDeviceId();
    await bench.clock.pass(10_000);
    if (restarts) await bench.restart();
    bench.network.mode = "fine";
    bench.network.requests.length = 0;
    await bench.clock.pass(600_000);
    assert.deepEqual(
      bench.network.requests.map(({ endpoint, body }) => [endpoint, body.deviceId, body["consent"]]),
      [
        ["configure", before, REFUSED],
        ["events", before, undefined],
        ["configure", after, {}],
      ],
      `restarts: ${restarts}`,
    );
    assert.deepEqual(bench.stored("a."), []);
  }
});

test("an opt-out that was not sent before reset is sent for the earlier device", async () => {
  const bench = await registered();
  const before = await bench.sdk.getDeviceId();
  bench.network.mode = "offline";
  await bench.sdk.optOut();
  await bench.sdk.reset();
  assert.equal(await bench.sdk.trackEvent("not recorded"), null);
  bench.network.mode = "fine";
  bench.network.requests.length = 0;
  await bench.clock.pass(600_000);
  assert.deepEqual(bench.network.requests, [
    { endpoint: "configure", body: { deviceId: before, platform: "android", consent: REFUSED } },
  ]);
});

test("a consent after optOut and optIn reaches the server, even if it received the same before", async () => {
  const bench = new Bench();
  const granted = { adUserData: true, adPersonalization: true };
  await bench.configure({ consent: granted });
  await bench.clock.pass(0);
  await bench.sdk.optOut();
  await bench.clock.pass(10_000);
  void bench.sdk.optIn();
  void bench.sdk.setConsent(granted);
  await bench.clock.pass(10_000);
  assert.deepEqual(
    to(bench, "configure").map((body) => body["consent"]),
    [granted, REFUSED, granted],
  );
});

test("calls right after each other keep their order with an asynchronous storage", async () => {
  const bench = new Bench({ storage: slowStorage() });
  void bench.configure();
  void bench.sdk.trackEvent("deleted");
  void bench.sdk.eraseMe();
  void bench.sdk.trackEvent("not recorded");
  void bench.sdk.optIn();
  void bench.sdk.trackEvent("kept");
  void bench.sdk.reset();
  void bench.sdk.trackEvent("another device");
  for (let n = 0; n < 20; n++) await bench.clock.pass(1_000);
  assert.deepEqual(bench.network.batches, [["kept"], ["another device"]]);
  const [one, two] = to(bench, "events");
  assert.notEqual(one!.deviceId, two!.deviceId);
  assert.equal(two!.deviceId, await bench.sdk.getDeviceId());
});
