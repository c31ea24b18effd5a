// The Expo config plugin: writes the permission and the Info.plist keys that the native modules need.

/** Expo's package re-exports the plugin functions in the version of the app. */
function configPlugins() {
  try {
    return require("expo/config-plugins");
  } catch {
    return require("@expo/config-plugins");
  }
}

const { AndroidConfig, createRunOncePlugin, withInfoPlist } = configPlugins();
const { name, version } = require("../package.json");

const AD_ID = "com.google.android.gms.permission.AD_ID";
const OPTIONS = ["advertisingId", "trackingDescription", "postbackUrl", "skAdNetworkIds"];

/** Rejects mistakes in app.json, which would otherwise show up only on a device. */
function check(options) {
  const unknown = Object.keys(options).filter((option) => !OPTIONS.includes(option));
  if (unknown.length > 0) fail(`unknown option ${unknown.join(", ")}; use ${OPTIONS.join(", ")}`);
  const { advertisingId, trackingDescription, postbackUrl, skAdNetworkIds } = options;
  if (advertisingId !== undefined && typeof advertisingId !== "boolean") fail("advertisingId must be true or false");
  if (trackingDescription !== undefined && (typeof trackingDescription !== "string" || !trackingDescription.trim())) {
    fail("trackingDescription must be a text that tells the user why the app asks");
  }
  // Apple appends its own path.
  if (postbackUrl !== undefined && !/^https:\/\/[^/?#\s]+$/.test(postbackUrl)) {
    fail("postbackUrl must be https:// and a domain without a path, such as https://example.com");
  }
  const isId = (id) => typeof id === "string" && /^[a-z0-9]+\.(skadnetwork|adattributionkit)$/.test(id);
  if (skAdNetworkIds !== undefined && !(Array.isArray(skAdNetworkIds) && skAdNetworkIds.every(isId))) {
    fail('skAdNetworkIds must be a list of ids such as "abc123.skadnetwork"');
  }
}

function fail(message) {
  throw new Error(`${name}: ${message}`);
}

/** Adds the permission for the advertising id, or removes it from the merged manifest. */
function withAdvertisingId(config, isWanted) {
  if (isWanted) return AndroidConfig.Permissions.withPermissions(config, [AD_ID]);
  return AndroidConfig.Permissions.withBlockedPermissions(config, AD_ID);
}

/** Adds keys to Info.plist. Keys that the app sets itself are kept, except those named in the options. */
function withKeys(config, { trackingDescription, postbackUrl, skAdNetworkIds = [] }) {
  return withInfoPlist(config, (modded) => {
    const plist = modded.modResults;
    if (trackingDescription) plist.NSUserTrackingUsageDescription = trackingDescription;
    if (postbackUrl) {
      plist.NSAdvertisingAttributionReportEndpoint = postbackUrl;
      plist.AttributionCopyEndpoint = postbackUrl;
    }
    const items = plist.SKAdNetworkItems ?? [];
    const known = items.map((item) => item.SKAdNetworkIdentifier);
    const more = skAdNetworkIds.filter((id) => !known.includes(id)).map((id) => ({ SKAdNetworkIdentifier: id }));
    if (more.length > 0) plist.SKAdNetworkItems = [...items, ...more];
    return modded;
  });
}

function withTributary(config, options) {
  const given = options ?? {};
  check(given);
  return withKeys(withAdvertisingId(config, given.advertisingId ?? true), given);
}

module.exports = createRunOncePlugin(withTributary, name, version);
