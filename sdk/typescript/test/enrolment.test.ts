// What `configure` tells, when, and what becomes of the answer.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { InstallReferrer } from "../src/types";
import { agreeable, answer } from "./support/network";
import { Bench } from "./support/sdk";

const told = (bench: Bench): Record<string, unknown>[] =>
  bench.network.asked.filter(({ door }) => door === "configure").map(({ body }) => body);

test("a device keeps its id and tells what it is at every start", async () => {
  const bench = new Bench({ device: { platform: "ios", osVersion: "18.1", model: "iPhone15,2" } });
  await bench.configure({ userId: "u1" });
  const id = await bench.sdk.getDeviceId();
  await bench.clock.pass(0);
  await bench.restart();
  await bench.clock.pass(0);
  assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.deepEqual(
    told(bench).map(({ deviceId }) => deviceId),
    [id, id],
  );
  const [first] = told(bench);
  assert.deepEqual([first!["platform"], first!["osVersion"], first!["userId"]], ["ios", "18.1", "u1"]);
  assert.match(first!["sdkVersion"] as string, /^ts-/);
});

test("events wait for the first configure, and it goes first when the network is back", async () => {
  const bench = new Bench();
  bench.network.mood = "offline";
  await bench.configure();
  void bench.sdk.trackEvent("a");
  await bench.clock.pass(86_400_000);
  assert.equal(bench.network.count("events"), 0);
  bench.network.mood = "fine";
  await bench.clock.pass(300_000);
  assert.deepEqual(
    bench.network.asked.slice(-2).map(({ door }) => door),
    ["configure", "events"],
  );
});

test("a configure that the server fails five times holds up events no longer", async () => {
  const bench = new Bench();
  bench.network.play = (asked) => (asked.door === "configure" ? answer(500, "{}") : agreeable(asked));
  await bench.configure();
  void bench.sdk.trackEvent("a");
  await bench.clock.pass(600_000);
  assert.deepEqual(
    bench.network.asked.slice(0, 6).map(({ door }) => door),
    [...Array<string>(5).fill("configure"), "events"],
  );
  assert.ok(bench.network.count("configure") > 5, "it is still tried");
});

test("a configure that is refused for good is not repeated, and events go", async () => {
  const bench = new Bench();
  bench.network.play = (asked) =>
    asked.door === "configure" ? answer(422, '{"error":{"code":"validation_failed"}}') : agreeable(asked);
  await bench.configure();
  void bench.sdk.trackEvent("a");
  await bench.clock.pass(3_600_000);
  assert.deepEqual(
    bench.network.asked.map(({ door }) => door),
    ["configure", "events"],
  );
});

test("getAttribution waits for the answer, and knows it at the next start without a network", async () => {
  const bench = new Bench();
  bench.network.mood = "offline";
  await bench.configure();
  const soon = bench.sdk.getAttribution(1_000);
  await bench.clock.pass(1_000);
  assert.equal(await soon, null);
  const waiting = bench.sdk.getAttribution(60_000);
  bench.network.mood = "fine";
  await bench.clock.pass(30_000);
  assert.equal((await waiting)!.network, "organic");
  bench.network.mood = "offline";
  await bench.restart();
  assert.equal((await bench.sdk.getAttribution())!.network, "organic");
});

test("a better decision is told, the same one is not told again", async () => {
  const bench = new Bench();
  const heard: string[] = [];
  const onAttribution = ({ network }: { network: string }): void => void heard.push(network);
  await bench.configure({ onAttribution });
  await bench.clock.pass(0);
  await bench.restart({ onAttribution });
  await bench.clock.pass(0);
  assert.deepEqual(heard, ["organic"]);
  const better = { sdkEnabled: true, attribution: { id: "att_1", network: "network_a" } };
  bench.network.play = () => answer(200, JSON.stringify({ data: better }));
  await bench.restart({ onAttribution });
  await bench.clock.pass(0);
  assert.deepEqual(heard, ["organic", "network_a"]);
});

test("the user agent of the web view goes with a URL that opened the app", async () => {
  const bench = new Bench({ device: { platform: "ios" } });
  let reads = 0;
  const providers = { userAgent: () => (reads++, "Mozilla/5.0 (iPhone)") };
  await bench.configure({ providers });
  await bench.clock.pass(0);
  assert.equal(reads, 0);
  assert.equal(told(bench).pop()!["userAgent"], undefined);
  void bench.sdk.openUrl("https://go.example.com/c/spring");
  await bench.clock.pass(10);
  const last = told(bench).pop()!;
  assert.deepEqual([last["openedUrl"], last["userAgent"]], ["https://go.example.com/c/spring", "Mozilla/5.0 (iPhone)"]);
});

test("consent is kept and told, and decides whether the advertising id is read", async () => {
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
  const last = told(bench).slice(-2);
  assert.deepEqual(
    last.map(({ consent }) => consent),
    Array(2).fill({ adUserData: true, tracking: "authorized" }),
  );
  assert.ok(last.every(({ idfa }) => idfa === "6F9619FF-8B86-4011-B42D-00C04FC964FF"));
  void bench.sdk.setConsent({ tracking: "denied" });
  await bench.clock.pass(10);
  assert.equal(told(bench).pop()!["idfa"], undefined);
});

test("the install referrer is asked for until it was delivered; a failure is told as such", async () => {
  const bench = new Bench();
  let gives: InstallReferrer | null = null;
  let asked = 0;
  const providers = {
    installReferrer: () => {
      asked++;
      if (!gives) throw new Error("the store is not there");
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
    told(bench).map(({ installReferrer }) => installReferrer),
    [{}, gives, undefined],
  );
  assert.equal(asked, 2);
});

test("a provider that hangs holds nothing up", async () => {
  const bench = new Bench({ device: { platform: "ios" } });
  await bench.configure({
    providers: { adServicesToken: () => new Promise<string>(() => undefined), openedUrl: () => "https://x/c/1" },
  });
  await bench.clock.pass(6_000);
  assert.deepEqual(
    told(bench).map(({ adServicesToken, openedUrl }) => [adServicesToken, openedUrl]),
    [[undefined, "https://x/c/1"]],
  );
});

test("the URL that opened the app survives a restart without network, and is told once", async () => {
  const bench = new Bench();
  const opened: string[] = [];
  bench.network.mood = "offline";
  await bench.configure({ providers: { openedUrl: () => "https://x/c/first" } });
  await bench.clock.pass(10);
  bench.network.mood = "fine";
  bench.network.play = (asked) => {
    if (asked.door !== "configure" || !asked.body["openedUrl"]) return agreeable(asked);
    const link = { linkId: asked.body["openedUrl"], deepLink: null, customData: {}, queryParams: {} };
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
  assert.equal(told(bench).pop()!["openedUrl"], undefined);
});

test("address and number leave the device as hashes only, once, before the events that follow", async () => {
  const bench = new Bench();
  await bench.configure();
  await bench.clock.pass(0);
  void bench.sdk.trackEvent("before");
  void bench.sdk.setAdvancedMatching("Cloudy.SanFrancisco+shopping@gmail.com", "+1 (415) 555-2671");
  void bench.sdk.setAdvancedMatching("cloudy.sanfrancisco+shopping@gmail.com", null);
  void bench.sdk.trackEvent("after");
  await bench.clock.pass(1_000);
  const everything =
    JSON.stringify(bench.network.asked) +
    JSON.stringify((bench.storage.keys() as string[]).map((key) => bench.storage.get(key)));
  for (const clear of ["cloudy", "gmail", "4155552671", "555-2671"])
    assert.ok(!everything.toLowerCase().includes(clear), clear);
  assert.deepEqual(
    bench.network.asked.map(({ door }) => door),
    ["configure", "events", "identify", "events"],
  );
  const { matching } = bench.network.asked[2]!.body as { matching: Record<string, string> };
  assert.deepEqual(Object.keys(matching), ["email", "emailGoogle", "phone", "phoneE164"]);
  void bench.sdk.setAdvancedMatching("nobody", "");
  assert.deepEqual(bench.codes, ["invalid_matching"]);
});

test("the user id is told when it changes, and not at every start", async () => {
  const bench = new Bench();
  await bench.configure({ userId: "u1" });
  await bench.clock.pass(1_000);
  await bench.restart({ userId: "u1" });
  await bench.clock.pass(1_000);
  void bench.sdk.setUserId("u2");
  await bench.clock.pass(1_000);
  const said = bench.network.asked.filter(({ door }) => door === "identify").map(({ body }) => body["userId"]);
  assert.deepEqual(said, ["u1", "u2"]);
});

test("outside of a browser the platform must be named", () => {
  const bench = new Bench();
  assert.throws(() => bench.configure({ device: undefined as never }), /device\.platform/);
  assert.throws(() => bench.configure({ key: "" }), /key and baseUrl/);
});

test("an id that cannot be read for once is not replaced", async () => {
  const bench = new Bench();
  await bench.configure();
  const id = await bench.sdk.getDeviceId();
  await bench.clock.pass(0);
  const { get } = bench.storage;
  let failures = 1;
  bench.storage.get = (key) => {
    if (key.endsWith("device") && failures-- > 0) throw new Error("for once");
    return get(key);
  };
  await bench.restart();
  await bench.clock.pass(0);
  assert.equal(await bench.sdk.getDeviceId(), id);
  assert.deepEqual(
    told(bench).map(({ deviceId }) => deviceId),
    [id, id],
  );
});
