// Conversion values in a running app: fetching, restarts, callbacks. What the values are, the shared table says.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConversionValue } from "../src/types";
import { agreeable, answer, type Asked } from "./support/network";
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

/** An iOS app that notes what it is told. */
class App extends Bench {
  readonly told: number[] = [];
  readonly callbacks = { onConversionValue: ({ fineValue }: ConversionValue): void => void this.told.push(fineValue) };

  constructor() {
    super({ device: { platform: "ios" } });
    this.network.play = serve;
  }
}

function serve(asked: Asked): ReturnType<typeof answer> {
  if (asked.door === "skan") return answer(200, JSON.stringify({ data: DOCUMENT }), { ETag: '"3"' });
  if (asked.door !== "configure") return agreeable(asked);
  return answer(200, JSON.stringify({ data: { sdkEnabled: true, attribution: null, skan: DOCUMENT } }));
}

test("the first launch makes a call without a network; values follow as events come", async () => {
  const app = new App();
  app.network.mood = "offline";
  await app.configure(app.callbacks);
  assert.deepEqual(app.told, [0]);
  void app.sdk.trackEvent("view_content");
  await app.clock.pass(100_000);
  assert.deepEqual(app.told, [0], "without a document nothing is decided");
  app.network.mood = "fine";
  await app.sdk.flush();
  assert.deepEqual(app.told, [0, 1]);
  void app.sdk.trackEvent("view_content");
  await app.clock.pass(0);
  assert.deepEqual(app.told, [0, 1, 5], "what happened before the document counts");
  void app.sdk.trackEvent("purchase", { revenue: "4.99", currency: "EUR" });
  await app.clock.pass(0);
  void app.sdk.trackEvent("purchase", { revenue: 0.02, currency: "USD" });
  await app.clock.pass(0);
  assert.deepEqual(app.told, [0, 1, 5, 40]);
});

test("a restart neither forgets nor repeats", async () => {
  const app = new App();
  await app.configure(app.callbacks);
  await app.clock.pass(10);
  void app.sdk.trackEvent("view_content");
  await app.clock.pass(10);
  await app.restart(app.callbacks);
  await app.clock.pass(10);
  void app.sdk.trackEvent("view_content");
  await app.clock.pass(10);
  assert.deepEqual(app.told, [0, 1, 5]);
});

test("an event that was queued when the app was killed is counted at the next start", async () => {
  const app = new App();
  app.network.mood = "offline";
  await app.configure(app.callbacks);
  await app.clock.pass(10);
  const before = app.storage.get("tributary.skan") as string;
  for (let n = 0; n < 2; n++) void app.sdk.trackEvent("view_content");
  // As if it had been killed between the two writes.
  void app.storage.set("tributary.skan", before);
  app.network.mood = "fine";
  await app.restart(app.callbacks);
  await app.clock.pass(10);
  assert.deepEqual(app.told, [0, 5]);
});

test("the document is asked for hourly, with its tag", async () => {
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

test("a callback that fails is called again by the next event", async () => {
  const app = new App();
  let isBroken = true;
  const told: number[] = [];
  await app.configure({
    onConversionValue: ({ fineValue }) => {
      if (isBroken) throw new Error("StoreKit");
      told.push(fineValue);
    },
  });
  await app.clock.pass(10);
  assert.ok(app.codes.every((code) => code === "callback_failed") && app.codes.length > 0);
  isBroken = false;
  void app.sdk.trackEvent("open");
  await app.clock.pass(10);
  assert.deepEqual(told, [1]);
});

test("an SDK that was told to stop tells the platform nothing more", async () => {
  const app = new App();
  await app.configure(app.callbacks);
  await app.clock.pass(10);
  app.network.play = () => answer(403, '{"error":{"code":"sdk_disabled"}}');
  void app.sdk.trackEvent("open");
  await app.clock.pass(1_000);
  for (let n = 0; n < 2; n++) void app.sdk.trackEvent("view_content");
  await app.restart(app.callbacks);
  await app.clock.pass(1_000);
  assert.deepEqual(app.told, [0, 1]);
});
