// The `configure` call: content, timing and response.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { InstallReferrer } from "../src/types";
import { acceptAll, answer } from "./support/network";
import { Bench } from "./support/sdk";

const configureBodies = (bench: Bench): Record<string, unknown>[] =>
  bench.network.requests.filter(({ endpoint }) => endpoint === "configure").map(({ body }) => body);

test("keeps the device id and sends the device data at every start", async () => {
  const bench = new Bench({ device: { platform: "ios", osVersion: "18.1", model: "iPhone15,2" } });
  await bench.configure({ userId: "u1" });
  const id = await bench.sdk.getDeviceId();
  await bench.clock.pass(0);
  await bench.restart();
  await bench.clock.pass(0);
  assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.deepEqual(
    configureBodies(bench).map(({ deviceId }) => deviceId),
    [id, id],
  );
  const [first] = configureBodies(bench);
  assert.deepEqual([first!["platform"], first!["osVersion"], first!["userId"]], ["ios", "18.1", "u1"]);
  assert.match(first!["sdkVersion"] as string, /^ts-/);
});

test("events wait for the first configure call, which is sent before them when the network is back", async () => {
  const bench = new Bench();
  bench.network.mode = "offline";
  await bench.configure();
  void bench.sdk.trackEvent("a");
  await bench.clock.pass(86_400_000);
  assert.equal(bench.network.count("events"), 0);
  bench.network.mode = "fine";
  await bench.clock.pass(300_000);
  assert.deepEqual(
    bench.network.requests.slice(-2).map(({ endpoint }) => endpoint),
    ["configure", "events"],
  );
});

test("events stop waiting after five server errors on configure", async () => {
  const bench = new Bench();
  bench.network.respond = (request) => (request.endpoint === "configure" ? answer(500, "{}") : acceptAll(request));
  await bench.configure();
  void bench.sdk.trackEvent("a");
  await bench.clock.pass(600_000);
  assert.deepEqual(
    bench.network.requests.slice(0, 6).map(({ endpoint }) => endpoint),
    [...Array<string>(5).fill("configure"), "events"],
  );
  assert.ok(bench.network.count("configure") > 5, "configure is still retried");
});

test("a permanently rejected configure is not repeated, and events are sent", async () => {
  const bench = new Bench();
  bench.network.respond = (request) =>
    request.endpoint === "configure" ? answer(422, '{"error":{"code":"validation_failed"}}') : acceptAll(request);
  await bench.configure();
  void bench.sdk.trackEvent("a");
  await bench.clock.pass(3_600_000);
  assert.deepEqual(
    bench.network.requests.map(({ endpoint }) => endpoint),
    ["configure", "events"],
  );
});

test("getAttribution waits for the response and works offline at the next start", async () => {
  const bench = new Bench();
  bench.network.mode = "offline";
  await bench.configure();
  const soon = bench.sdk.getAttribution(1_000);
  await bench.clock.pass(1_000);
  assert.equal(await soon, null);
  const waiting = bench.sdk.getAttribution(60_000);
  bench.network.mode = "fine";
  await bench.clock.pass(30_000);
  assert.equal((await waiting)!.network, "organic");
  bench.network.mode = "offline";
  await bench.restart();
  assert.equal((await bench.sdk.getAttribution())!.network, "organic");
});

test("calls onAttribution for a better attribution but not for the same one", async () => {
  const bench = new Bench();
  const reported: string[] = [];
  const onAttribution = ({ network }: { network: string }): void => void reported.push(network);
  await bench.configure({ onAttribution });
  await bench.clock.pass(0);
  await bench.restart({ onAttribution });
  await bench.clock.pass(0);
  assert.deepEqual(reported, ["organic"]);
  const better = { sdkEnabled: true, attribution: { id: "att_1", network: "network_a" } };
  bench.network.respond = () => answer(200, JSON.stringify({ data: better }));
  await bench.restart({ onAttribution });
  await bench.clock.pass(0);
  assert.deepEqual(reported, ["organic", "network_a"]);
});

test("sends the web view's user agent with a URL that opened the app", async () => {
  const bench = new Bench({ device: { platform: "ios" } });
  let reads = 0;
  const providers = { userAgent: () => (reads++, "Mozilla/5.0 (iPhone)") };
  await bench.configure({ providers });
  await bench.clock.pass(0);
  assert.equal(reads, 0);
  assert.equal(configureBodies(bench).pop()!["userAgent"], undefined);
  void bench.sdk.openUrl("https://go.example.com/c/spring");
  await bench.clock.pass(10);
  const last = configureBodies(bench).pop()!;
  assert.deepEqual([last["openedUrl"], last["userAgent"]], ["https://go.example.com/c/spring", "Mozilla/5.0 (iPhone)"]);
});

test("stores and sends consent, which controls whether the advertising id is read", async () => {
  const bench = new Bench({ device: { platform: "ios" } });
  let reads = 0;
  const providers = { advertisingId: () => (reads++, "6F9619FF-8B86-4011-B42D-00C04FC964FF") };
  await bench.configure({ providers });
  await bench.clock.pass(0);
  void bench.sdk.setConsent({ adUserData: true });
  void bench.sdk.setConsent({ tracking: "notDetermined" });
  await bench.clock.pass(10);
  assert.equal(reads, 0);
  void bench.sdk.setConsent({ tracking: "authorized" });
  await bench.clock.pass(10);
  await bench.restart({ providers });
  await bench.clock.pass(10);
  const last = configureBodies(bench).slice(-2);
  assert.deepEqual(
    last.map(({ consent }) => consent),
    Array(2).fill({ adUserData: true, tracking: "authorized" }),
  );
  assert.ok(last.every(({ idfa }) => idfa === "6F9619FF-8B86-4011-B42D-00C04FC964FF"));
  void bench.sdk.setConsent({ tracking: "denied" });
  await bench.clock.pass(10);
  assert.equal(configureBodies(bench).pop()!["idfa"], undefined);
});

test("consent and URLs that change while a provider is slow", async () => {
  const bench = new Bench({ device: { platform: "ios" } });
  const waiting: (() => void)[] = [];
  const slow = <T>(value: T): Promise<T> => new Promise((done) => waiting.push(() => done(value)));
  const advertisingId = (): Promise<string> => slow("6F9619FF-8B86-4011-B42D-00C04FC964FF");
  const providers = { advertisingId, userAgent: () => "Mozilla/5.0" };
  await bench.configure({ providers, consent: { tracking: "authorized" } });
  await bench.clock.pass(0);
  void bench.sdk.openUrl("https://x/c/1");
  waiting.splice(0).forEach((done) => done());
  await bench.clock.pass(0);
  void bench.sdk.setConsent({ tracking: "denied" });
  waiting.splice(0).forEach((done) => done());
  await bench.clock.pass(10);
  assert.deepEqual(
    configureBodies(bench).map(({ openedUrl, userAgent, idfa }) => [openedUrl, userAgent, idfa]),
    [["https://x/c/1", "Mozilla/5.0", undefined]],
  );
});

test("reads the install referrer until it is delivered, and reports a failure to the server", async () => {
  const bench = new Bench();
  let gives: InstallReferrer | null = null;
  let calls = 0;
  const providers = {
    installReferrer: () => {
      calls++;
      if (!gives) throw new Error("store unavailable");
      return gives;
    },
  };
  await bench.configure({ providers });
  await bench.clock.pass(0);
  gives = { referrer: "utm_source=x", installBeginAtServerSeconds: 5 };
  await bench.restart({ providers });
  await bench.clock.pass(0);
  await bench.restart({ providers });
  await bench.clock.pass(0);
  assert.deepEqual(
    configureBodies(bench).map(({ installReferrer }) => installReferrer),
    [{}, gives, undefined],
  );
  assert.equal(calls, 2);
});

test("a hanging provider times out", async () => {
  const bench = new Bench({ device: { platform: "ios" } });
  await bench.configure({
    providers: { adServicesToken: () => new Promise<string>(() => undefined), openedUrl: () => "https://x/c/1" },
  });
  await bench.clock.pass(6_000);
  assert.deepEqual(
    configureBodies(bench).map(({ adServicesToken, openedUrl }) => [adServicesToken, openedUrl]),
    [[undefined, "https://x/c/1"]],
  );
});

test("the URL that opened the app survives an offline restart and is sent once", async () => {
  const bench = new Bench();
  const opened: string[] = [];
  bench.network.mode = "offline";
  await bench.configure({ providers: { openedUrl: () => "https://x/c/first" } });
  await bench.clock.pass(10);
  bench.network.mode = "fine";
  bench.network.respond = (request) => {
    if (request.endpoint !== "configure" || !request.body["openedUrl"]) return acceptAll(request);
    const link = { linkId: request.body["openedUrl"], deepLink: null, customData: {}, queryParams: {} };
    return answer(
      200,
      JSON.stringify({ data: { sdkEnabled: true, attribution: { id: "a", network: "x" }, opened: link } }),
    );
  };
  await bench.restart({ onOpenedLink: ({ linkId }) => opened.push(linkId) });
  await bench.clock.pass(10);
  void bench.sdk.openUrl("https://x/c/second");
  await bench.clock.pass(10);
  void bench.sdk.setConsent({ adUserData: true });
  await bench.clock.pass(10);
  assert.deepEqual(opened, ["https://x/c/first", "https://x/c/second"]);
  assert.equal(configureBodies(bench).pop()!["openedUrl"], undefined);
});

test("sends e-mail and phone as hashes only, once, ahead of the events that follow", async () => {
  const bench = new Bench();
  await bench.configure();
  await bench.clock.pass(0);
  void bench.sdk.trackEvent("before");
  void bench.sdk.setAdvancedMatching("Cloudy.SanFrancisco+shopping@gmail.com", "+1 (415) 555-2671");
  void bench.sdk.setAdvancedMatching("cloudy.sanfrancisco+shopping@gmail.com", null);
  void bench.sdk.trackEvent("after");
  await bench.clock.pass(1_000);
  const everything =
    JSON.stringify(bench.network.requests) +
    JSON.stringify((bench.storage.keys() as string[]).map((key) => bench.storage.get(key)));
  for (const clear of ["cloudy", "gmail", "4155552671", "555-2671"])
    assert.ok(!everything.toLowerCase().includes(clear), clear);
  assert.deepEqual(
    bench.network.requests.map(({ endpoint }) => endpoint),
    ["configure", "events", "identify", "events"],
  );
  const { matching } = bench.network.requests[2]!.body as { matching: Record<string, string> };
  assert.deepEqual(Object.keys(matching), ["email", "emailGoogle", "phone", "phoneE164"]);
  void bench.sdk.setAdvancedMatching("nobody", "");
  assert.deepEqual(bench.codes, ["invalid_matching"]);
});

test("sends the user id when it changes, not at every start", async () => {
  const bench = new Bench();
  await bench.configure({ userId: "u1" });
  await bench.clock.pass(1_000);
  await bench.restart({ userId: "u1" });
  await bench.clock.pass(1_000);
  void bench.sdk.setUserId("u2");
  await bench.clock.pass(1_000);
  const userIds = bench.network.requests.filter(({ endpoint }) => endpoint === "identify").map(({ body }) => body["userId"]);
  assert.deepEqual(userIds, ["u1", "u2"]);
});

test("sends the signature of the user id, also if it arrives later", async () => {
  const bench = new Bench();
  await bench.configure({ userId: "u1" });
  await bench.clock.pass(1_000);
  void bench.sdk.setUserId("u1", "a1");
  void bench.sdk.setUserId("u1", "a1");
  await bench.clock.pass(1_000);
  await bench.restart({ userId: "u1", userIdSignature: "a1" });
  await bench.clock.pass(1_000);
  const identified = bench.network.requests.filter(({ endpoint }) => endpoint === "identify");
  const sent = identified.map(({ body }) => [body["userId"], body["userIdSignature"]]);
  assert.deepEqual(sent, [
    ["u1", undefined],
    ["u1", "a1"],
  ]);
});

test("requires device.platform outside of a browser", () => {
  const bench = new Bench();
  assert.throws(() => bench.configure({ device: undefined as never }), /device\.platform/);
  assert.throws(() => bench.configure({ key: "" }), /key and baseUrl/);
});

test("does not replace the device id after a failed read", async () => {
  const bench = new Bench();
  await bench.configure();
  const id = await bench.sdk.getDeviceId();
  await bench.clock.pass(0);
  const { get } = bench.storage;
  let failures = 1;
  bench.storage.get = (key) => {
    if (key.endsWith("device") && failures-- > 0) throw new Error("temporary failure");
    return get(key);
  };
  await bench.restart();
  await bench.clock.pass(0);
  assert.equal(await bench.sdk.getDeviceId(), id);
  assert.deepEqual(
    configureBodies(bench).map(({ deviceId }) => deviceId),
    [id, id],
  );
});

test("configure does not repeat a user id that has changed", async () => {
  const bench = new Bench();
  await bench.configure({ userId: "u1", userIdSignature: "s1" });
  await bench.clock.pass(0);
  await bench.sdk.setUserId("u2");
  void bench.sdk.setConsent({ adUserData: true });
  await bench.clock.pass(10);
  const users = bench.network.requests.map(({ endpoint, body }) => [endpoint, body["userId"], body["userIdSignature"]]);
  assert.deepEqual(users.slice(-2), [
    ["configure", undefined, undefined],
    ["identify", "u2", undefined],
  ]);
});
