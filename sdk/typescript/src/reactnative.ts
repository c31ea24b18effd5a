import { native as parts } from "./native.js";
import { asyncStorageAdapter, type AsyncStorageLike } from "./storage.js";
import type { Device, Options } from "./types.js";

/** The parts of React Native that the SDK uses. The app passes them in, so that this package has no dependency. */
export interface ReactNativeLike {
  Platform: { OS: string; Version: string | number; constants?: object };
  Dimensions?: { get(of: "screen"): { width: number; height: number; scale: number } };
  AppState?: {
    addEventListener(type: "change", listener: (state: string) => void): { remove(): void } | undefined;
  };
}

/** Returns the options that React Native can provide: device, storage, lifecycle, and the native parts. */
export function fromReactNative(
  native: ReactNativeLike,
  asyncStorage: AsyncStorageLike,
): Pick<Options, "device" | "storage" | "lifecycle" | "native"> {
  const { Platform, Dimensions, AppState } = native;
  const constants = (Platform.constants ?? {}) as Record<string, unknown>;
  const device: Device = {
    platform: Platform.OS === "ios" || Platform.OS === "android" ? Platform.OS : "web",
    // On Android, `Version` is the API level; the OS version is the constant `Release`.
    osVersion: String(constants["Release"] ?? constants["osVersion"] ?? Platform.Version),
  };
  if (typeof constants["Model"] === "string") device.model = constants["Model"];
  if (typeof constants["Manufacturer"] === "string") device.manufacturer = constants["Manufacturer"];
  if (Dimensions) {
    const { width, height, scale } = Dimensions.get("screen");
    device.screen = { width, height, scale };
  }
  const { locale, timeZone } = typeof Intl === "undefined" ? ({} as never) : Intl.DateTimeFormat().resolvedOptions();
  if (locale) device.locale = locale;
  if (timeZone) device.timezone = timeZone;
  return {
    device,
    storage: asyncStorageAdapter(asyncStorage),
    native: parts,
    ...(AppState && {
      lifecycle: (onChange: (isActive: boolean) => void) => {
        const listening = AppState.addEventListener("change", (state) => onChange(state === "active"));
        return () => listening?.remove();
      },
    }),
  };
}
