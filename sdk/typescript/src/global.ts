// Sets the global variable `Tributary`, for pages without a bundler.

import * as Package from "./index.js";

declare global {
  var Tributary: typeof Package;
}

globalThis.Tributary = Package;
