import { Client } from "./client.js";

/** The default instance. It does nothing before `configure`. */
export const client = /* @__PURE__ */ new Client();

export const {
  configure,
  trackEvent,
  setGlobalParams,
  setUserId,
  setConsent,
  openUrl,
  getAttribution,
  getDeviceId,
  getClickId,
  flush,
  shutdown,
} = client;
