import { Linking, NativeModules, Platform } from "react-native";
import type { Consent, InstallReferrer, Options } from "tributary-sdk";

/** The user's choice in the platform's tracking prompt. */
export type Tracking = NonNullable<Consent["tracking"]>;

/** The native module, in Kotlin and Swift. Each method exists on one platform or on both. */
interface NativeModule {
  installReferrer?(): Promise<InstallReferrer | null>;
  adServicesToken?(): Promise<string | null>;
  advertisingId(): Promise<string | null>;
  userAgent(): Promise<string | null>;
  trackingStatus?(): Promise<Tracking>;
  requestTracking?(): Promise<Tracking>;
  updateConversionValue?(fineValue: number, coarseValue: string, lockWindow: boolean): Promise<void>;
}

/** Returns the native module; undefined if it is not linked, for example in Expo Go. */
const nativeModule = (): NativeModule | undefined => NativeModules["TributaryReactNative"] as NativeModule | undefined;

/**
 * Returns the options for `configure` that need native code: install referrer, AdServices token, advertising id, user
 * agent, the URL that opened the app, and on iOS the reporting of conversion values.
 */
export function nativeProviders(): Pick<Options, "providers" | "onConversionValue"> {
  const openedUrl = (): Promise<string | null> => Linking.getInitialURL();
  const native = nativeModule();
  if (!native) {
    console.warn("Tributary: the native module is not linked. Rebuild the app; it does not work in Expo Go.");
    return { providers: { openedUrl } };
  }
  const both = { openedUrl, advertisingId: () => native.advertisingId(), userAgent: () => native.userAgent() };
  if (Platform.OS === "android") {
    return { providers: { ...both, installReferrer: async () => (await native.installReferrer?.()) ?? null } };
  }
  return {
    providers: { ...both, adServicesToken: async () => (await native.adServicesToken?.()) ?? null },
    onConversionValue: async ({ fineValue, coarseValue, lockWindow }) =>
      native.updateConversionValue?.(fineValue, coarseValue, lockWindow),
  };
}

/** Returns the user's choice without asking. On Android, which has no prompt, it is `notDetermined`. */
export async function trackingStatus(): Promise<Tracking> {
  return (await nativeModule()?.trackingStatus?.()) ?? "notDetermined";
}

/**
 * Shows the tracking prompt on iOS, if the user has not seen it, and returns the choice. Pass it to the SDK:
 * `setConsent({ tracking: await requestTracking() })`.
 */
export async function requestTracking(): Promise<Tracking> {
  return (await nativeModule()?.requestTracking?.()) ?? "notDetermined";
}
