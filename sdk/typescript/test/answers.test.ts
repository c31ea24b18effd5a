// What the server says, and what becomes of it. Time and network are in the test's hands.

import assert from "node:assert/strict";
import { test } from "node:test";
import { agreeable, answer } from "./support/network";
import { Bench } from "./support/sdk";

const names = (count: number): string[] => Array.from({ length: count }, (_, i) => `e${i + 1}`);

test("the answer of a Wi-Fi's sign-in page is none", async () => {
  const bench = new Bench();
  bench.network.mood = "portal";
  await bench.configure();
  void bench.sdk.trackEvent("a");
  await bench.clock.pass(60_000);
  assert.equal(bench.stored("q.").length, 1);
  bench.network.mood = "fine";
  await bench.clock.pass(300_000);
  assert.deepEqual(bench.network.batches.flat(), ["a"]);
});

test("a server that asks for patience gets it", async () => {
  const bench = new Bench();
  await bench.configure();
  await bench.clock.pass(0);
  bench.network.script = ["busy"];
  void bench.sdk.trackEvent("a");
  await bench.clock.pass(1_000);
  await bench.clock.pass(2_900);
  assert.equal(bench.network.count("events"), 1);
  await bench.clock.pass(200);
  assert.equal(bench.network.count("events"), 2);
  assert.equal(bench.stored("q.").length, 0);
});

test("sdkEnabled: false stops everything, until a later start hears otherwise", async () => {
  const bench = new Bench();
  bench.network.mood = "offline";
  await bench.configure();
  void bench.sdk.trackEvent("before");
  const stop = answer(
    200,
    '{"data":{"sdkEnabled":false,"firstOpen":false,"attribution":null,"opened":null,"skan":null}}',
  );
  bench.network.play = () => stop;
  bench.network.mood = "fine";
  assert.equal(await bench.sdk.flush(), false);
  assert.equal(await bench.sdk.trackEvent("after"), null);
  assert.equal(await bench.sdk.getAttribution(), null);
  assert.equal(bench.stored("q.").length, 0);
  const asked = bench.network.asked.length;
  await bench.clock.pass(86_400_000);
  assert.equal(bench.network.asked.length, asked);

  await bench.restart();
  await bench.clock.pass(86_400_000);
  assert.equal(bench.network.asked.length, asked + 1, "one question at the next start");
  assert.equal(await bench.sdk.trackEvent("still"), null);

  bench.network.play = agreeable;
  await bench.restart();
  await bench.clock.pass(0);
  assert.ok(await bench.sdk.trackEvent("again"));
  await bench.clock.pass(1_000);
  assert.deepEqual(bench.network.batches, [["again"]]);
});

test("the events door may tell it to stop as well", async () => {
  const bench = new Bench();
  await bench.configure();
  await bench.clock.pass(0);
  bench.network.play = () => answer(403, '{"error":{"code":"sdk_disabled"}}');
  void bench.sdk.trackEvent("a");
  await bench.clock.pass(1_000);
  assert.equal(bench.stored("q.").length, 0);
  assert.equal(await bench.sdk.trackEvent("b"), null);
});

test("a wrong key loses nothing and is not tried again before the next start", async () => {
  const bench = new Bench();
  bench.network.play = () => answer(401, '{"error":{"code":"invalid_api_key"}}');
  await bench.configure();
  void bench.sdk.trackEvent("a");
  await bench.clock.pass(3_600_000);
  assert.equal(bench.network.asked.length, 1);
  assert.deepEqual(bench.codes, ["invalid_api_key"]);
  bench.network.play = agreeable;
  await bench.restart();
  await bench.clock.pass(1_000);
  assert.deepEqual(bench.network.batches, [["a"]]);
});

test("of a batch that is refused as a whole only the culprit is dropped", async () => {
  const bench = new Bench();
  await bench.configure();
  await bench.clock.pass(0);
  bench.network.play = (asked) =>
    asked.body.events?.some(({ name }) => name === "e7")
      ? answer(413, '{"error":{"code":"payload_too_large"}}')
      : agreeable(asked);
  for (const name of names(12)) void bench.sdk.trackEvent(name);
  await bench.clock.pass(1_000);
  assert.equal(bench.stored("q.").length, 0);
  assert.deepEqual(bench.codes, ["request_refused"]);
  const taken = bench.network.batches.filter((batch) => !batch.includes("e7")).flat();
  assert.deepEqual(
    taken,
    names(12).filter((name) => name !== "e7"),
  );
});

test("an event that the server rejects is told and not sent again", async () => {
  const bench = new Bench();
  await bench.configure();
  await bench.clock.pass(0);
  const rejected = { status: "rejected", eventId: "x", error: { details: [{ field: "name", message: "No." }] } };
  bench.network.play = () => answer(202, JSON.stringify({ data: [rejected] }));
  void bench.sdk.trackEvent("a");
  await bench.clock.pass(1_000);
  assert.deepEqual(bench.problems, [{ code: "event_rejected", message: "name: No.", eventId: "x" }]);
  assert.equal(bench.stored("q.").length, 0);
});

test("a server that refuses everything is left alone for an hour, with the queue", async () => {
  const bench = new Bench();
  await bench.configure();
  await bench.clock.pass(0);
  bench.network.play = () => answer(422, '{"error":{"code":"validation_failed"}}');
  for (const name of names(100)) void bench.sdk.trackEvent(name);
  await bench.clock.pass(1_800_000);
  assert.ok(bench.network.count("events") < 20);
  assert.equal(bench.stored("q.").length, 90);
  bench.network.play = agreeable;
  await bench.clock.pass(3_600_000);
  assert.equal(bench.stored("q.").length, 0);
});

test("an answer without a word on every event is none", async () => {
  const bench = new Bench();
  await bench.configure();
  await bench.clock.pass(0);
  const odd = [
    answer(204, ""),
    answer(202, '{"data":[]}'),
    answer(200, '{"data":{"ok":true}}'),
    answer(404, "Not found"),
  ];
  bench.network.play = (asked) => odd.shift() ?? agreeable(asked);
  void bench.sdk.trackEvent("a");
  void bench.sdk.trackEvent("b");
  await bench.clock.pass(60_000);
  assert.deepEqual(bench.network.batches, Array(5).fill(["a", "b"]));
  assert.equal(bench.stored("q.").length, 0);
});

test("records that were damaged harm none of their neighbours", async () => {
  const bench = new Bench();
  bench.network.mood = "offline";
  await bench.configure();
  void bench.sdk.trackEvent("a");
  void bench.sdk.setUserId("u1");
  void bench.sdk.trackEvent("b");
  await bench.sdk.shutdown();
  for (const key of ["launch", "answer", "person", "consent"]) void bench.storage.set(`tributary.${key}`, "{damaged");
  void bench.storage.set(bench.stored("q.").find((key) => key.includes(".i."))!, "");
  bench.network.mood = "fine";
  bench.network.play = (asked) =>
    asked.door === "identify" ? answer(400, '{"error":{"code":"malformed_json"}}') : agreeable(asked);
  const { fetch } = bench.network;
  await bench.configure({
    // What is no JSON is refused before anybody looks at it.
    fetch: (url, request) => fetch(url, url.endsWith("identify") ? { ...request, body: "{}" } : request),
  });
  await bench.clock.pass(10_000);
  assert.deepEqual(bench.network.batches, [["a"], ["b"]]);
  assert.deepEqual(bench.codes, ["request_refused"]);
});
