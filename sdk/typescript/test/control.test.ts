// What users may demand: optOut, optIn, reset and eraseMe.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Tributary } from "../src/advanced";
import { Client } from "../src/client";
import { native } from "../src/native";
import { memoryStorage } from "../src/storage";
import type { Consent, HttpAnswer, HttpRequest, Options } from "../src/types";
import { secret } from "../src/uuid";
import { acceptAll, answer, type RecordedRequest } from "./support/network";
import { Bench } from "./support/sdk";
import { slowStorage } from "./support/slow";

const REFUSED = { adUserData: false, adPersonalization: false };

const to = (bench: Bench, endpoint: string): RecordedRequest["body"][] =>
  bench.network.requests.filter((request) => request.endpoint === endpoint).map(({ body }) => body);

const endpoints = (bench: Bench): string[] => bench.network.requests.map(({ endpoint }) => endpoint);

/** Starts the SDK and registers the device. */
async function registered(bench = new Bench()): Promise<Bench> {
  await bench.configure();
  await bench.clock.pass(0);
  bench.network.requests.length = 0;
  return bench;
}

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

test("the erase token is sent until a response confirms it", async () => {
  const bench = new Bench();
  bench.network.script = ["lost", "portal"];
  await bench.configure();
  await bench.clock.pass(60_000);
  await bench.restart();
  await bench.clock.pass(0);
  const tokens = to(bench, "configure").map((body) => body["eraseToken"] as string);
  assert.equal(tokens.length, 4);
  assert.match(tokens[0]!, /^[A-Za-z0-9_-]{43}$/);
  assert.equal(Buffer.from(tokens[0]!, "base64url").toString("base64url"), tokens[0], "canonical base64url");
  assert.deepEqual(tokens.slice(1), [tokens[0], tokens[0], undefined]);
});

/** Runs without the platform's secure source of random numbers, as in old React Native. */
async function withoutCrypto(run: () => Promise<void>): Promise<void> {
  const before = Object.getOwnPropertyDescriptor(globalThis, "crypto")!;
  Object.defineProperty(globalThis, "crypto", { value: undefined, configurable: true });
  try {
    await run();
  } finally {
    Object.defineProperty(globalThis, "crypto", before);
  }
}

test("the erase token has 32 bytes of the secure source", () => {
  const made = Array.from({ length: 200 }, () => secret()!);
  assert.equal(new Set(made).size, 200);
  for (const token of made) {
    const bytes = Buffer.from(token, "base64url");
    assert.deepEqual([bytes.length, bytes.toString("base64url")], [32, token]);
  }
  const bytes = Uint8Array.from({ length: 32 }, (_, i) => (i * 83 + 251) & 255);
  assert.equal(native.secret({ randomBytes: () => bytes }), Buffer.from(bytes).toString("base64url"));
  assert.equal(native.secret({ randomBytes: () => bytes.slice(1) }), undefined);
});

test("without a secure source, the token is made by the provider, or not at all", () =>
  withoutCrypto(async () => {
    const bench = new Bench();
    await bench.configure();
    await bench.clock.pass(0);
    assert.deepEqual(bench.codes, ["no_secure_random"]);
    assert.equal(to(bench, "configure")[0]!["eraseToken"], undefined);
    assert.equal(await bench.sdk.eraseMe(), false);
    assert.deepEqual(bench.codes, ["no_secure_random", "no_secure_random"]);
    assert.equal(bench.network.count("erase"), 0);

    const other = new Bench();
    await other.configure({ providers: { randomBytes: (count) => new Uint8Array(count).fill(255) } });
    await other.clock.pass(0);
    assert.deepEqual(other.codes, []);
    assert.equal(to(other, "configure")[0]!["eraseToken"], `${"_".repeat(42)}8`);
    assert.equal(await other.sdk.eraseMe(), true);
  }));

test("eraseMe asks the server, deletes everything on the device, and stops recording", async () => {
  const bench = new Bench();
  await bench.configure({ userId: "u1" });
  await bench.clock.pass(0);
  const id = await bench.sdk.getDeviceId();
  const [{ eraseToken } = {}] = to(bench, "configure");
  void bench.sdk.trackEvent("unsent");
  await bench.clock.pass(10);
  bench.network.requests.length = 0;
  assert.equal(await bench.sdk.eraseMe(), true);
  assert.deepEqual(bench.network.requests, [{ endpoint: "erase", body: { deviceId: id, eraseToken } }]);
  assert.equal(await bench.sdk.trackEvent("not recorded"), null);
  await bench.clock.pass(3_600_000);
  assert.equal(bench.network.requests.length, 1);
  const kept = (bench.storage.keys() as string[]).map((key) => [key, bench.storage.get(key)]);
  assert.deepEqual(kept, [["tributary.consent", '{"stop":"erased"}']]);

  await bench.restart();
  assert.ok(await bench.sdk.trackEvent("new device"));
  await bench.clock.pass(10_000);
  const [configured] = to(bench, "configure");
  assert.notEqual(configured!.deviceId, id);
  assert.notEqual(configured!["eraseToken"], eraseToken);
  assert.deepEqual([configured!["consent"], to(bench, "events")[0]!.deviceId], [{}, configured!.deviceId]);
});

test("optOut after eraseMe keeps recording stopped, and the erasure is still sent", async () => {
  const bench = await registered();
  bench.network.mode = "offline";
  await bench.sdk.eraseMe();
  await bench.sdk.optOut();
  await bench.restart();
  assert.equal(await bench.sdk.trackEvent("a"), null);
  bench.network.mode = "fine";
  bench.network.requests.length = 0;
  await bench.clock.pass(600_000);
  assert.deepEqual(endpoints(bench), ["erase"]);
});

test("an opt-out survives eraseMe and the next start", async () => {
  const bench = await registered();
  await bench.sdk.optOut();
  await bench.clock.pass(10_000);
  assert.equal(await bench.sdk.eraseMe(), true);
  assert.deepEqual(endpoints(bench), ["configure", "erase"]);
  await bench.restart();
  assert.equal(await bench.sdk.trackEvent("not recorded"), null);
  await bench.clock.pass(3_600_000);
  assert.equal(bench.network.requests.length, 2);
  await bench.sdk.optIn();
  assert.ok(await bench.sdk.trackEvent("recorded"));
});

test("an unsent opt-out of a device that is erased is not sent", async () => {
  const bench = await registered();
  bench.network.mode = "offline";
  await bench.sdk.optOut();
  await bench.sdk.eraseMe();
  await bench.restart();
  bench.network.mode = "fine";
  bench.network.requests.length = 0;
  await bench.clock.pass(600_000);
  assert.deepEqual(endpoints(bench), ["erase"]);
  assert.equal(await bench.sdk.trackEvent("not recorded"), null);
});

/** Two tabs of a registered device. */
async function tabs(more: Partial<Options> = {}): Promise<{ bench: Bench; first: Tributary; second: Tributary }> {
  const bench = await registered(new Bench({ storage: { ...memoryStorage(), shared: true }, ...more }));
  const first = bench.sdk;
  const second = (bench.sdk = new Tributary());
  await bench.configure();
  await bench.clock.pass(10_000);
  bench.network.requests.length = 0;
  return { bench, first, second };
}

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

test("a tab erases the device that another tab made", async () => {
  const { bench, first, second } = await tabs();
  await first.reset();
  await bench.clock.pass(10_000);
  const [{ deviceId, eraseToken } = {}] = to(bench, "configure");
  const erased = second.eraseMe();
  await bench.clock.pass(1_000);
  assert.equal(await erased, true);
  assert.deepEqual(to(bench, "erase"), [{ deviceId, eraseToken }]);
  await first.optIn();
  assert.notEqual(await first.getDeviceId(), deviceId);
  assert.equal(await second.getDeviceId(), await first.getDeviceId());
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

test("an opt-out carries the erase token until a response has confirmed it", async () => {
  const bench = new Bench();
  bench.network.mode = "lost";
  await bench.configure();
  await bench.clock.pass(0);
  await bench.sdk.optOut();
  bench.network.mode = "fine";
  await bench.clock.pass(60_000);
  const [first, ...more] = to(bench, "configure");
  assert.ok(first!["eraseToken"] && more.length > 0);
  for (const body of more) assert.equal(body["eraseToken"], first!["eraseToken"]);
  assert.deepEqual(more.pop()!["consent"], REFUSED);
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

test("a start without these functions still sends the refusal or erasure of an earlier one", async () => {
  for (const [call, sent] of [
    ["optOut", ["configure"]],
    ["eraseMe", ["erase", "configure"]],
  ] as const) {
    const bench = await registered();
    bench.network.mode = "offline";
    await bench.sdk[call]();
    await bench.sdk.shutdown();
    bench.network.mode = "fine";
    bench.network.requests.length = 0;
    bench.sdk = new Client() as Tributary;
    await bench.configure();
    await bench.clock.pass(0);
    assert.deepEqual(endpoints(bench), sent, call);
  }
});

test("eraseMe is repeated after a lost response and a restart; optIn does not wait for it", async () => {
  const bench = await registered();
  const id = await bench.sdk.getDeviceId();
  bench.network.mode = "lost";
  assert.equal(await bench.sdk.eraseMe(), false);
  assert.equal(await bench.sdk.trackEvent("not recorded"), null);
  bench.network.mode = "offline";
  await bench.restart();
  await bench.sdk.eraseMe();
  await bench.sdk.optIn();
  void bench.sdk.trackEvent("recorded");
  await bench.clock.pass(60_000);
  bench.network.mode = "fine";
  await bench.clock.pass(600_000);
  const erased = to(bench, "erase");
  assert.ok(erased.length > 2 && erased.every((body) => JSON.stringify(body) === JSON.stringify(erased[0])));
  assert.equal(erased[0]!.deviceId, id);
  assert.deepEqual(endpoints(bench).slice(-3), ["erase", "configure", "events"]);
  assert.notEqual(to(bench, "events")[0]!.deviceId, id);
  assert.deepEqual(bench.stored("erase"), []);
});

test("a refused erasure is reported once; a server without the endpoint does not block events", async () => {
  const bench = await registered();
  bench.network.respond = (request) =>
    request.endpoint === "erase" ? answer(403, '{"error":{"code":"invalid_erase_token"}}') : acceptAll(request);
  assert.equal(await bench.sdk.eraseMe(), false);
  await bench.clock.pass(3_600_000);
  assert.deepEqual([bench.network.count("erase"), bench.codes], [1, ["erase_refused"]]);

  await bench.restart();
  await bench.clock.pass(0);
  bench.network.respond = (request) => (request.endpoint === "erase" ? answer(404, "") : acceptAll(request));
  await bench.sdk.eraseMe();
  await bench.sdk.optIn();
  void bench.sdk.trackEvent("a");
  await bench.clock.pass(10_000);
  assert.deepEqual(bench.network.batches, [["a"]]);
});

test("a disabled SDK still erases", async () => {
  const bench = await registered();
  bench.network.respond = (request) =>
    request.endpoint === "erase" ? acceptAll(request) : answer(403, '{"error":{"code":"sdk_disabled"}}');
  void bench.sdk.trackEvent("a");
  await bench.clock.pass(10_000);
  assert.equal(await bench.sdk.eraseMe(), true);
  assert.deepEqual(endpoints(bench), ["events", "erase"]);
});

test("a response that arrives after eraseMe or reset does not restore the earlier device", async () => {
  for (const call of ["eraseMe", "reset"] as const) {
    const bench = new Bench();
    let release: (() => void) | undefined;
    const { fetch } = bench.network;
    const held = (url: string, request: HttpRequest): Promise<HttpAnswer> =>
      new Promise((done) => (release = () => void fetch(url, request).then(done)));
    await bench.configure({ fetch: (url, request) => (release ? fetch(url, request) : held(url, request)) });
    await bench.clock.pass(0);
    const id = await bench.sdk.getDeviceId();
    const called = bench.sdk[call]();
    release!();
    await called;
    await bench.clock.pass(60_000);
    const ids = bench.network.requests.map(({ endpoint, body }) => [endpoint, body.deviceId === id]);
    const second = { eraseMe: ["erase", true], reset: ["configure", false] };
    assert.deepEqual(ids, [["configure", true], second[call]], call);
    if (call === "eraseMe") assert.deepEqual(bench.storage.keys(), ["tributary.consent"]);
  }
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
