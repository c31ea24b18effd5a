import { Tributary } from "./tributary.js";

export { Tributary } from "./tributary.js";
export { fromReactNative, type ReactNativeLike } from "./reactnative.js";
export {
  asyncStorageAdapter,
  indexedDbAdapter,
  localStorageAdapter,
  memoryStorage,
  type AsyncStorageLike,
} from "./storage.js";
export type * from "./types.js";

// The default instance. It does nothing before `configure`.
const tributary = new Tributary();

export const {
  configure,
  trackEvent,
  setAdvancedMatching,
  setUserId,
  setConsent,
  openUrl,
  getAttribution,
  getDeviceId,
  flush,
  shutdown,
} = tributary;
