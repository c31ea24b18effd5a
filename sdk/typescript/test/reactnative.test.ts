// The built package in a bare JavaScript engine, like React Native.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { createContext, runInContext } from "node:vm";
import type * as Package from "../src/index";
import type { Options } from "../src/types";
import { FakeClock } from "./support/clock";
import { acceptAll, Network } from "./support/network";

/** Loads the package without document, fetch, crypto and timers. */
function load(): typeof Package {
  const module = { exports: {} };
  runInContext(readFileSync("dist/index.cjs", "utf8"), createContext({ module }));
  return module.exports as typeof Package;
}

/** A minimal AsyncStorage. */
class FakeAsyncStorage {
  readonly items = new Map<string, string>();
  getItem = async (key: string): Promise<string | null> => this.items.get(key) ?? null;
  setItem = async (key: string, value: string): Promise<void> => void this.items.set(key, value);
  removeItem = async (key: string): Promise<void> => void this.items.delete(key);
  getAllKeys = async (): Promise<string[]> => [...this.items.keys()];
}

const native = (onListen: (listener: (state: string) => void) => void = () => undefined) => ({
  Platform: { OS: "android", Version: 34, constants: { Release: "14", Model: "Pixel 8", Manufacturer: "Google" } },
  Dimensions: { get: () => ({ width: 412, height: 915, scale: 2.625, fontScale: 1 }) },
  AppState: {
    addEventListener: (_type: "change", listener: (state: string) => void) => {
      onListen(listener);
      return { remove: () => undefined };
    },
  },
});

test("works in a bare engine: events survive a restart and are sent in the background", async () => {
  const clock = new FakeClock();
  const network = new Network();
  network.respond = acceptAll;
  const asyncStorage = new FakeAsyncStorage();
  const common = { key: "pk_live_test", baseUrl: "http://127.0.0.1:9", clock, fetch: network.fetch };
  let turn: (state: string) => void = () => undefined;

  network.mode = "offline";
  const first = load();
  const options = (sdk: typeof Package): Options => ({
    ...common,
    ...sdk.fromReactNative(
      native((listener) => (turn = listener)),
      asyncStorage,
    ),
  });
  void first.trackEvent("before");
  void first.configure(options(first));
  assert.ok(await first.trackEvent("purchase", { revenue: 9.99, currency: "EUR" }));
  assert.equal([...asyncStorage.items.keys()].filter((key) => key.includes(".q.")).length, 2);
  await first.shutdown();

  network.mode = "fine";
  const second = load();
  await second.configure(options(second));
  await clock.pass(10);
  assert.deepEqual(network.batches, [["before", "purchase"]]);
  const { body } = network.requests.find(({ endpoint }) => endpoint === "configure")!;
  assert.deepEqual(
    [body["platform"], body["osVersion"], body["model"], body["manufacturer"], body["screen"]],
    ["android", "14", "Pixel 8", "Google", { width: 412, height: 915, scale: 2.625 }],
  );
  await second.trackEvent("last");
  turn("background");
  await clock.pass(10);
  assert.deepEqual(network.batches.pop(), ["last"]);
  assert.equal([...asyncStorage.items.keys()].filter((key) => key.includes(".q.")).length, 0);
  await second.shutdown();
});
