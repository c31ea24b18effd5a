export { setAdvancedMatching, Tributary } from "./advanced.js";
export { eraseMe, optIn, optOut, reset } from "./control.js";
export {
  configure,
  flush,
  getAttribution,
  getClickId,
  getDeviceId,
  openUrl,
  setConsent,
  setGlobalParams,
  setUserId,
  shutdown,
  trackEvent,
} from "./default.js";
export { leaseLock } from "./lock.js";
export { native } from "./native.js";
export { fromReactNative, type ReactNativeLike } from "./reactnative.js";
export {
  asyncStorageAdapter,
  indexedDbAdapter,
  localStorageAdapter,
  memoryStorage,
  type AsyncStorageLike,
} from "./storage.js";
export type * from "./types.js";
