// Messages that name the mistake, the console, and the smaller functions.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { diagnose } from "../src/diagnosis";
import { acceptAll, answer } from "./support/network";
import { Bench } from "./support/sdk";

const WRONG = [
  [answer(404, "<!doctype html><title>Not found</title>"), /answers 404 with an HTML page.*Check baseUrl/],
  [answer(200, "<html>"), /answers 200 with an HTML page/],
  [answer(404, '{"error":{"code":"not_found"}}'), /answers 404, not like/],
  [answer(405, ""), /answers 405/],
  [answer(301, ""), /answers 301/],
  [answer(200, '{"ok":true}'), /answers 200, not like/],
] as const;

test("a wrong baseUrl is reported once and loses nothing", async () => {
  for (const [wrong, message] of WRONG) {
    const bench = new Bench();
    bench.network.respond = () => wrong;
    await bench.configure();
    void bench.sdk.trackEvent("a");
    await bench.clock.pass(86_400_000);
    assert.deepEqual(bench.codes, ["wrong_base_url"]);
    assert.match(bench.problems[0]!.message, message);
    assert.ok(bench.problems[0]!.message.startsWith("http://127.0.0.1:9 "));
    bench.network.respond = acceptAll;
    await bench.clock.pass(300_000);
    assert.deepEqual(bench.network.batches, [["a"]]);
  }
});

test("an unknown key is reported with what to do", async () => {
  const bench = new Bench();
  bench.network.respond = () => answer(401, '{"error":{"code":"invalid_api_key"}}');
  await bench.configure();
  await bench.clock.pass(0);
  assert.deepEqual(bench.codes, ["invalid_api_key"]);
  assert.match(bench.problems[0]!.message, /Unknown SDK key.*settings/);
});

test("a missing network and temporary errors are not problems outside of a browser", async () => {
  const bench = new Bench();
  bench.network.mode = "offline";
  await bench.configure();
  void bench.sdk.trackEvent("a");
  await bench.clock.pass(3_600_000);
  bench.network.mode = "busy";
  await bench.clock.pass(3_600_000);
  assert.deepEqual(bench.codes, []);
});

const globals = globalThis as unknown as Record<string, unknown>;
const real = { fetch: globalThis.fetch, navigator: Object.getOwnPropertyDescriptor(globalThis, "navigator") };
afterEach(() => {
  globals["fetch"] = real.fetch;
  delete globals["document"];
  if (real.navigator) Object.defineProperty(globalThis, "navigator", real.navigator);
  else delete globals["navigator"];
});

/** Simulates a browser in which requests without CORS reach only URLs that match. */
function browser(reachable: RegExp, onLine = true): void {
  globals["document"] = {};
  Object.defineProperty(globalThis, "navigator", { value: { onLine }, configurable: true });
  globals["fetch"] = async (url: string, { mode }: { mode: string }) => {
    assert.equal(mode, "no-cors");
    if (!reachable.test(url)) throw new TypeError("Failed to fetch");
    return {};
  };
}

test("diagnosis: CORS, a blocking extension, an unreachable server, offline, no browser", async () => {
  const code = async (): Promise<string | undefined> =>
    (await diagnose("https://t.example/api/track/configure", "https://t.example"))?.code;
  browser(/./);
  assert.equal(await code(), "cors_refused");
  browser(/readyz/);
  assert.equal(await code(), "request_blocked");
  browser(/nothing/);
  assert.equal(await code(), "server_unreachable");
  browser(/./, false);
  assert.equal(await code(), undefined);
  delete globals["document"];
  assert.equal(await code(), undefined);
});

test("logLevel: problems by default, every request with debug, nothing with none", async () => {
  const lines: string[] = [];
  const { warn, debug } = console;
  console.warn = (text: string) => lines.push(`warn ${text}`);
  console.debug = (text: string) => lines.push(`debug ${text}`);
  const run = async (more: object): Promise<string[]> => {
    lines.length = 0;
    const bench = new Bench();
    await bench.configure(more);
    void bench.sdk.trackEvent("");
    await bench.clock.pass(1_000);
    return [...lines];
  };
  try {
    const warning = "warn Tributary: name must be a non-empty string.";
    assert.deepEqual(await run({ logLevel: "none" }), []);
    assert.deepEqual(await run({ logLevel: undefined }), [warning]);
    const request = "debug Tributary: POST http://127.0.0.1:9/api/track/configure: done";
    assert.deepEqual(await run({ logLevel: "debug" }), [warning, request]);
  } finally {
    Object.assign(console, { warn, debug });
  }
});

test("providers and onConversionValue need the native parts", async () => {
  const bench = new Bench();
  await bench.configure({ native: undefined as never, providers: { openedUrl: () => "https://x/c/1" } });
  await bench.clock.pass(0);
  assert.deepEqual(bench.codes, ["missing_native"]);
});

test("global parameters are added to every event; the event's own win", async () => {
  const bench = new Bench();
  void bench.sdk.setGlobalParams({ plan: "pro", step: 1, revenue: 5, currency: "EUR" });
  void bench.sdk.trackEvent("before configure");
  await bench.configure();
  void bench.sdk.trackEvent("own", { step: 2 });
  void bench.sdk.setGlobalParams({ theme: "dark" });
  void bench.sdk.trackEvent("replaced");
  void bench.sdk.setGlobalParams(null);
  void bench.sdk.trackEvent("removed");
  await bench.clock.pass(1_000);
  const sent = bench.network.requests.flatMap(({ body }) => body.events ?? []);
  const events = sent as unknown as Record<string, unknown>[];
  assert.deepEqual(
    events.map(({ params, revenue, currency }) => [params, revenue, currency]),
    [
      [{ plan: "pro", step: 1 }, undefined, undefined],
      [{ plan: "pro", step: 2 }, undefined, undefined],
      [{ theme: "dark" }, undefined, undefined],
      [undefined, undefined, undefined],
    ],
  );
});

test("getClickId returns the latest click, otherwise that of the attribution", async () => {
  const bench = new Bench();
  bench.network.mode = "offline";
  await bench.configure();
  assert.equal(await bench.sdk.getClickId(), null);
  bench.network.mode = "fine";
  const attribution = { id: "att_1", network: "network_a", clickId: "attributed" };
  bench.network.respond = () => answer(200, JSON.stringify({ data: { sdkEnabled: true, attribution } }));
  await bench.clock.pass(60_000);
  assert.equal(await bench.sdk.getClickId(), "attributed");
  await bench.sdk.openUrl("https://x/c/1?a=b&ar_click_id=click%2D2#top");
  await bench.clock.pass(1_000);
  await bench.restart();
  assert.equal(await bench.sdk.getClickId(), "click-2");
  await bench.sdk.openUrl("https://x/c/1?ar_click_id=%E0%A4%A");
  assert.equal(await bench.sdk.getClickId(), "%E0%A4%A", "an invalid escape is kept");
  await bench.sdk.reset();
  assert.equal(await bench.sdk.getClickId(), null);
});

test("userId and userIdSignature are options of configure", async () => {
  const bench = new Bench();
  await bench.configure({ userId: "u1", userIdSignature: "s1" });
  await bench.clock.pass(1_000);
  const sent = bench.network.requests.map(({ body }) => [body["userId"], body["userIdSignature"]]);
  assert.deepEqual(sent, Array(2).fill(["u1", "s1"]));
});
