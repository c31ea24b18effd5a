// Runs the built entry with a simulated React Native.

import assert from "node:assert/strict";
import Module, { createRequire } from "node:module";
import { test } from "node:test";

const require = createRequire(import.meta.url);
const native = { NativeModules: {}, Platform: { OS: "ios" }, Linking: { getInitialURL: async () => "runner://start" } };
const load = Module._load;
Module._load = (name, ...rest) => (name === "react-native" ? native : load(name, ...rest));
const { nativeProviders, requestTracking, trackingStatus } = require("../lib/index.js");

/** Simulates a platform. */
function platform(os, methods) {
  native.Platform.OS = os;
  native.NativeModules = methods ? { TributaryReactNative: methods } : {};
}

test("Android: referrer, advertising id and user agent", async () => {
  const referrer = { referrer: "ar_click_id=clk_1", clickAtSeconds: 1 };
  platform("android", {
    installReferrer: async () => referrer,
    advertisingId: async () => "gaid",
    userAgent: async () => "agent",
  });
  const { providers, onConversionValue } = nativeProviders();
  assert.deepEqual(await providers.installReferrer(), referrer);
  assert.equal(await providers.advertisingId(), "gaid");
  assert.equal(await providers.userAgent(), "agent");
  assert.equal(await providers.openedUrl(), "runner://start");
  assert.equal(providers.adServicesToken, undefined);
  assert.equal(onConversionValue, undefined);
  assert.equal(await requestTracking(), "notDetermined");
});

test("iOS: token, tracking prompt and conversion values", async () => {
  const reported = [];
  platform("ios", {
    adServicesToken: async () => "token",
    advertisingId: async () => null,
    userAgent: async () => "agent",
    trackingStatus: async () => "notDetermined",
    requestTracking: async () => "denied",
    updateConversionValue: async (...values) => void reported.push(values),
  });
  const { providers, onConversionValue } = nativeProviders();
  assert.equal(await providers.adServicesToken(), "token");
  assert.equal(await providers.advertisingId(), null);
  assert.equal(providers.installReferrer, undefined);
  await onConversionValue({ fineValue: 40, coarseValue: "high", lockWindow: true, window: 0 });
  assert.deepEqual(reported, [[40, "high", true]]);
  assert.equal(await trackingStatus(), "notDetermined");
  assert.equal(await requestTracking(), "denied");
});

test("Expo Go: only what needs no native module", async () => {
  platform("ios", undefined);
  const warn = console.warn;
  let warnings = 0;
  console.warn = () => warnings++;
  const { providers, onConversionValue } = nativeProviders();
  console.warn = warn;
  assert.equal(warnings, 1);
  assert.deepEqual(Object.keys(providers), ["openedUrl"]);
  assert.equal(onConversionValue, undefined);
  assert.equal(await trackingStatus(), "notDetermined");
});
