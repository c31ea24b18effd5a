// Handling of server responses, with a fake clock and network.

import assert from "node:assert/strict";
import { test } from "node:test";
import { acceptAll, answer } from "./support/network";
import { Bench } from "./support/sdk";

const names = (count: number): string[] => Array.from({ length: count }, (_, i) => `e${i + 1}`);

test("ignores the response from a captive portal", async () => {
  const bench = new Bench();
  bench.network.mode = "portal";
  await bench.configure();
  void bench.sdk.trackEvent("a");
  await bench.clock.pass(60_000);
  assert.equal(bench.stored("q.").length, 1);
  bench.network.mode = "fine";
  await bench.clock.pass(300_000);
  assert.deepEqual(bench.network.batches.flat(), ["a"]);
});

test("honours Retry-After", async () => {
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

test("sdkEnabled: false stops the SDK until a later start enables it", async () => {
  const bench = new Bench();
  bench.network.mode = "offline";
  await bench.configure();
  void bench.sdk.trackEvent("before");
  const stop = answer(
    200,
    '{"data":{"sdkEnabled":false,"firstOpen":false,"attribution":null,"opened":null,"skan":null}}',
  );
  bench.network.respond = () => stop;
  bench.network.mode = "fine";
  assert.equal(await bench.sdk.flush(), false);
  assert.equal(await bench.sdk.trackEvent("after"), null);
  assert.equal(await bench.sdk.getAttribution(), null);
  assert.equal(bench.stored("q.").length, 0);
  const requestCount = bench.network.requests.length;
  await bench.clock.pass(86_400_000);
  assert.equal(bench.network.requests.length, requestCount);

  await bench.restart();
  await bench.clock.pass(86_400_000);
  assert.equal(bench.network.requests.length, requestCount + 1, "one request at the next start");
  assert.equal(await bench.sdk.trackEvent("still"), null);

  bench.network.respond = acceptAll;
  await bench.restart();
  await bench.clock.pass(0);
  assert.ok(await bench.sdk.trackEvent("again"));
  await bench.clock.pass(1_000);
  assert.deepEqual(bench.network.batches, [["again"]]);
});

test("the events endpoint can disable the SDK as well", async () => {
  const bench = new Bench();
  await bench.configure();
  await bench.clock.pass(0);
  bench.network.respond = () => answer(403, '{"error":{"code":"sdk_disabled"}}');
  void bench.sdk.trackEvent("a");
  await bench.clock.pass(1_000);
  assert.equal(bench.stored("q.").length, 0);
  assert.equal(await bench.sdk.trackEvent("b"), null);
});

test("with an invalid key, keeps all events and sends nothing before the next start", async () => {
  const bench = new Bench();
  bench.network.respond = () => answer(401, '{"error":{"code":"invalid_api_key"}}');
  await bench.configure();
  void bench.sdk.trackEvent("a");
  await bench.clock.pass(3_600_000);
  assert.equal(bench.network.requests.length, 1);
  assert.deepEqual(bench.codes, ["invalid_api_key"]);
  bench.network.respond = acceptAll;
  await bench.restart();
  await bench.clock.pass(1_000);
  assert.deepEqual(bench.network.batches, [["a"]]);
});

test("drops only the invalid event in a rejected batch", async () => {
  const bench = new Bench();
  await bench.configure();
  await bench.clock.pass(0);
  bench.network.respond = (request) =>
    request.body.events?.some(({ name }) => name === "e7")
      ? answer(413, '{"error":{"code":"payload_too_large"}}')
      : acceptAll(request);
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

test("reports a rejected event and does not send it again", async () => {
  const bench = new Bench();
  await bench.configure();
  await bench.clock.pass(0);
  const rejected = { status: "rejected", eventId: "x", error: { details: [{ field: "name", message: "No." }] } };
  bench.network.respond = () => answer(202, JSON.stringify({ data: [rejected] }));
  void bench.sdk.trackEvent("a");
  await bench.clock.pass(1_000);
  assert.deepEqual(bench.problems, [{ code: "event_rejected", message: "name: No.", eventId: "x" }]);
  assert.equal(bench.stored("q.").length, 0);
});

test("pauses for an hour and keeps the queue if the server rejects everything", async () => {
  const bench = new Bench();
  await bench.configure();
  await bench.clock.pass(0);
  bench.network.respond = () => answer(422, '{"error":{"code":"validation_failed"}}');
  for (const name of names(100)) void bench.sdk.trackEvent(name);
  await bench.clock.pass(1_800_000);
  assert.ok(bench.network.count("events") < 20);
  assert.equal(bench.stored("q.").length, 90);
  bench.network.respond = acceptAll;
  await bench.clock.pass(3_600_000);
  assert.equal(bench.stored("q.").length, 0);
});

test("ignores a response that does not cover every event", async () => {
  const bench = new Bench();
  await bench.configure();
  await bench.clock.pass(0);
  const odd = [
    answer(204, ""),
    answer(202, '{"data":[]}'),
    answer(200, '{"data":{"ok":true}}'),
    answer(404, "Not found"),
  ];
  bench.network.respond = (request) => odd.shift() ?? acceptAll(request);
  void bench.sdk.trackEvent("a");
  void bench.sdk.trackEvent("b");
  await bench.clock.pass(60_000);
  assert.deepEqual(bench.network.batches, Array(5).fill(["a", "b"]));
  assert.equal(bench.stored("q.").length, 0);
});

test("a damaged record does not affect other records", async () => {
  const bench = new Bench();
  bench.network.mode = "offline";
  await bench.configure();
  void bench.sdk.trackEvent("a");
  void bench.sdk.setUserId("u1");
  void bench.sdk.trackEvent("b");
  await bench.sdk.shutdown();
  for (const key of ["launch", "answer", "person", "consent"]) void bench.storage.set(`tributary.${key}`, "{damaged");
  void bench.storage.set(bench.stored("q.").find((key) => key.includes(".i."))!, "");
  bench.network.mode = "fine";
  bench.network.respond = (request) =>
    request.endpoint === "identify" ? answer(400, '{"error":{"code":"malformed_json"}}') : acceptAll(request);
  const { fetch } = bench.network;
  await bench.configure({
    // The server rejects invalid JSON before it reads the fields.
    fetch: (url, request) => fetch(url, url.endsWith("identify") ? { ...request, body: "{}" } : request),
  });
  await bench.clock.pass(10_000);
  assert.deepEqual(bench.network.batches, [["a"], ["b"]]);
  assert.deepEqual(bench.codes, ["request_refused"]);
});
