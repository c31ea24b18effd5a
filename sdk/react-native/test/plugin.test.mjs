// Runs the Expo config plugin on a manifest and an Info.plist.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";

const require = createRequire(import.meta.url);
const plugin = require("../app.plugin.js");
const { compileModsAsync } = require("@expo/config-plugins");

const MANIFEST = `<manifest xmlns:android="http://schemas.android.com/apk/res/android">
  <uses-permission android:name="android.permission.INTERNET"/>
  <application android:name=".MainApplication"/>
</manifest>`;
const PLIST = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0"><dict>
  <key>CFBundleName</key><string>Runner</string>
  <key>SKAdNetworkItems</key>
  <array><dict><key>SKAdNetworkIdentifier</key><string>known1.skadnetwork</string></dict></array>
</dict></plist>`;

const root = mkdtempSync(join(tmpdir(), "tributary-expo-"));
after(() => rmSync(root, { recursive: true, force: true }));
const files = {
  manifest: join(root, "android/app/src/main/AndroidManifest.xml"),
  plist: join(root, "ios/Runner/Info.plist"),
};

/** Runs the plugin as `expo prebuild` does. Returns the manifest's text and the plist's. */
async function prebuild(options, runs = 1) {
  for (const [name, text] of [
    ["manifest", MANIFEST],
    ["plist", PLIST],
  ]) {
    mkdirSync(dirname(files[name]), { recursive: true });
    writeFileSync(files[name], text);
  }
  mkdirSync(join(root, "ios/Runner.xcodeproj"), { recursive: true });
  writeFileSync(join(root, "ios/Runner/AppDelegate.swift"), "");
  for (let run = 0; run < runs; run++) {
    const app = {
      name: "Runner",
      slug: "runner",
      ios: { bundleIdentifier: "com.example.runner" },
      _internal: { projectRoot: root },
    };
    const config = plugin(plugin(app, options), options);
    await compileModsAsync(config, { projectRoot: root, platforms: ["android", "ios"] });
  }
  return { manifest: readFileSync(files.manifest, "utf8"), plist: readFileSync(files.plist, "utf8") };
}

test("has the version of the SDK", () => {
  const own = require("../package.json");
  const { version } = require("../../typescript/package.json");
  assert.equal(own.version, version);
  assert.equal(own.peerDependencies["tributary-sdk"], version);
});

const count = (text, part) => text.split(part).length - 1;

test("adds the permission once and keeps the others", async () => {
  const { manifest, plist } = await prebuild(undefined, 2);
  assert.equal(count(manifest, "com.google.android.gms.permission.AD_ID"), 1);
  assert.equal(count(manifest, "android.permission.INTERNET"), 1);
  assert.doesNotMatch(manifest, /tools:node/);
  assert.match(plist, /<string>Runner<\/string>/);
  assert.doesNotMatch(plist, /NSUserTrackingUsageDescription|AttributionCopyEndpoint/);
});

test("removes the permission that the library adds", async () => {
  const { manifest } = await prebuild({ advertisingId: false });
  assert.match(manifest, /AD_ID" tools:node="remove"/);
});

test("writes the keys to Info.plist", async () => {
  const options = {
    trackingDescription: "Your data helps us to measure ads.",
    postbackUrl: "https://example.com",
    skAdNetworkIds: ["known1.skadnetwork", "more2.skadnetwork"],
  };
  const { plist } = await prebuild(options, 2);
  const key = (name, value) => new RegExp(`<key>${name}</key>\\s*<string>${value}</string>`);
  assert.match(plist, key("NSUserTrackingUsageDescription", "Your data helps us to measure ads."));
  assert.match(plist, key("NSAdvertisingAttributionReportEndpoint", "https://example.com"));
  assert.match(plist, key("AttributionCopyEndpoint", "https://example.com"));
  assert.equal(count(plist, "known1.skadnetwork"), 1);
  assert.equal(count(plist, "more2.skadnetwork"), 1);
});

for (const [options, message] of [
  [{ postbackURL: "https://example.com" }, /unknown option postbackURL/],
  [{ postbackUrl: "https://example.com/path" }, /postbackUrl must be/],
  [{ postbackUrl: "http://example.com" }, /postbackUrl must be/],
  [{ trackingDescription: " " }, /trackingDescription must be/],
  [{ advertisingId: "no" }, /advertisingId must be/],
  [{ skAdNetworkIds: ["ABC"] }, /skAdNetworkIds must be/],
]) {
  test(`names the mistake in ${JSON.stringify(options)}`, () => {
    assert.throws(() => plugin({ name: "Runner", slug: "runner" }, options), message);
  });
}
