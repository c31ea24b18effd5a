// What users may demand: eraseMe and its token.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Tributary } from "../src/advanced";
import { Client } from "../src/client";
import { native } from "../src/native";
import type { HttpAnswer, HttpRequest } from "../src/types";
import { secret } from "../src/uuid";
import { acceptAll, answer } from "./support/network";
import { REFUSED, endpoints, registered, tabs, to } from "./support/rights";
import { Bench } from "./support/sdk";

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
