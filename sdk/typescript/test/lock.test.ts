// Several instances on one storage: only one sends at a time.

import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryStorage } from "../src/storage";
import { Tributary } from "../src/advanced";
import { Bench } from "./support/sdk";

const shared = (): Bench => new Bench({ storage: { ...memoryStorage(), shared: true } });

/** Starts another instance on the same storage, like a second tab. */
function second(bench: Bench): Tributary {
  const first = bench.sdk;
  bench.sdk = new Tributary();
  void bench.configure();
  const other = bench.sdk;
  bench.sdk = first;
  return other;
}

test("two instances on one storage send every event once and share the device id", async () => {
  const bench = shared();
  await bench.configure();
  const other = second(bench);
  for (let n = 0; n < 20; n++) {
    void bench.sdk.trackEvent(`a${n}`);
    void other.trackEvent(`b${n}`);
  }
  await bench.clock.pass(60_000);
  const sent = bench.network.batches.flat();
  assert.equal(sent.length, 40);
  assert.equal(new Set(sent).size, 40);
  assert.equal(await bench.sdk.getDeviceId(), await other.getDeviceId());
  assert.equal(new Set(bench.network.requests.map(({ body }) => body.deviceId)).size, 1);
  assert.equal(bench.stored("lease").length, 0);
});

test("the lease of a dead instance expires, whatever the clock shows", async () => {
  for (const until of [29_000, 86_400_000, -1]) {
    const bench = shared();
    const lease = JSON.stringify({ owner: "dead", until: bench.clock.now() + until });
    void bench.storage.set("tributary.lease", lease);
    await bench.configure();
    void bench.sdk.trackEvent("a");
    await bench.clock.pass(40_000);
    assert.deepEqual(bench.network.batches, [["a"]], String(until));
  }
});

test("sends nothing while another instance holds the lease", async () => {
  const bench = shared();
  await bench.configure();
  await bench.clock.pass(1_000);
  const renew = (): unknown =>
    bench.storage.set("tributary.lease", JSON.stringify({ owner: "other", until: bench.clock.now() + 30_000 }));
  renew();
  void bench.sdk.trackEvent("a");
  for (let n = 0; n < 10; n++) {
    await bench.clock.pass(10_000);
    renew();
  }
  assert.deepEqual(bench.network.batches, []);
  await bench.clock.pass(40_000);
  assert.deepEqual(bench.network.batches, [["a"]]);
});
