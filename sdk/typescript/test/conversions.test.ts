// Conversion values in a running app: fetching, restarts, callbacks. The shared table tests the values themselves.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConversionValue } from "../src/types";
import { acceptAll, answer, type RecordedRequest } from "./support/network";
import { Bench } from "./support/sdk";

const DOCUMENT = {
  version: 3,
  enabled: true,
  currency: "USD",
  rates: { EUR: "2" },
  windows: [
    {
      index: 0,
      enabled: true,
      values: [
        { name: "Paid", fineValue: 40, coarseValue: "high", conditions: [{ event: "purchase", minRevenue: 10 }] },
        { name: "Seen", fineValue: 5, coarseValue: "medium", conditions: [{ event: "view_content", minCount: 2 }] },
        { name: "Install", fineValue: 1, coarseValue: "low", conditions: [{ event: "install", minCount: 1 }] },
      ],
    },
  ],
};

/** An iOS app that records the reported values. */
class App extends Bench {
  readonly reported: number[] = [];
  readonly callbacks = { onConversionValue: ({ fineValue }: ConversionValue): void => void this.reported.push(fineValue) };

  constructor() {
    super({ device: { platform: "ios" } });
    this.network.respond = serve;
  }
}

function serve(request: RecordedRequest): ReturnType<typeof answer> {
  if (request.endpoint === "skan") return answer(200, JSON.stringify({ data: DOCUMENT }), { ETag: '"3"' });
  if (request.endpoint !== "configure") return acceptAll(request);
  return answer(200, JSON.stringify({ data: { sdkEnabled: true, attribution: null, skan: DOCUMENT } }));
}

test("reports an initial value offline at first launch, then values as events arrive", async () => {
  const app = new App();
  app.network.mode = "offline";
  await app.configure(app.callbacks);
  assert.deepEqual(app.reported, [0]);
  void app.sdk.trackEvent("view_content");
  await app.clock.pass(100_000);
  assert.deepEqual(app.reported, [0], "no further value without a document");
  app.network.mode = "fine";
  await app.sdk.flush();
  assert.deepEqual(app.reported, [0, 1]);
  void app.sdk.trackEvent("view_content");
  await app.clock.pass(0);
  assert.deepEqual(app.reported, [0, 1, 5], "events before the document count");
  void app.sdk.trackEvent("purchase", { revenue: "4.99", currency: "EUR" });
  await app.clock.pass(0);
  void app.sdk.trackEvent("purchase", { revenue: 0.02, currency: "USD" });
  await app.clock.pass(0);
  assert.deepEqual(app.reported, [0, 1, 5, 40]);
});

test("a restart keeps the state and does not repeat a call", async () => {
  const app = new App();
  await app.configure(app.callbacks);
  await app.clock.pass(10);
  void app.sdk.trackEvent("view_content");
  await app.clock.pass(10);
  await app.restart(app.callbacks);
  await app.clock.pass(10);
  void app.sdk.trackEvent("view_content");
  await app.clock.pass(10);
  assert.deepEqual(app.reported, [0, 1, 5]);
});

test("counts events at the next start if the app was killed after queueing them", async () => {
  const app = new App();
  app.network.mode = "offline";
  await app.configure(app.callbacks);
  await app.clock.pass(10);
  const before = app.storage.get("tributary.skan") as string;
  for (let n = 0; n < 2; n++) void app.sdk.trackEvent("view_content");
  // Simulates a kill between the two writes.
  void app.storage.set("tributary.skan", before);
  app.network.mode = "fine";
  await app.restart(app.callbacks);
  await app.clock.pass(10);
  assert.deepEqual(app.reported, [0, 5]);
});

test("fetches the document hourly with its ETag", async () => {
  const app = new App();
  const tags: (string | undefined)[] = [];
  const { fetch } = app.network;
  await app.configure({
    ...app.callbacks,
    fetch: (url, request) => {
      if (url.includes("/skan?deviceId=")) tags.push(request.headers["If-None-Match"]);
      return fetch(url, request);
    },
  });
  await app.clock.pass(10);
  for (let hour = 0; hour < 3; hour++) {
    for (let n = 0; n < 4; n++) {
      void app.sdk.trackEvent("open");
      await app.clock.pass(900_000);
    }
  }
  assert.deepEqual(tags, [undefined, '"3"']);
});

test("retries a failed callback with the next event", async () => {
  const app = new App();
  let isBroken = true;
  const reported: number[] = [];
  await app.configure({
    onConversionValue: ({ fineValue }) => {
      if (isBroken) throw new Error("StoreKit");
      reported.push(fineValue);
    },
  });
  await app.clock.pass(10);
  assert.ok(app.codes.every((code) => code === "callback_failed") && app.codes.length > 0);
  isBroken = false;
  void app.sdk.trackEvent("open");
  await app.clock.pass(10);
  assert.deepEqual(reported, [1]);
});

test("a disabled SDK reports no more values", async () => {
  const app = new App();
  await app.configure(app.callbacks);
  await app.clock.pass(10);
  app.network.respond = () => answer(403, '{"error":{"code":"sdk_disabled"}}');
  void app.sdk.trackEvent("open");
  await app.clock.pass(1_000);
  for (let n = 0; n < 2; n++) void app.sdk.trackEvent("view_content");
  await app.restart(app.callbacks);
  await app.clock.pass(1_000);
  assert.deepEqual(app.reported, [0, 1]);
});
