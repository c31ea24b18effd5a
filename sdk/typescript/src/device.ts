import type { Device } from "./types.js";

/** Query parameter in which a tracking link passes the click id. */
const CLICK = /[?&]ar_click_id=([^&#]+)/;

const isBrowser = (): boolean => typeof document !== "undefined" && typeof location !== "undefined";

/** Returns device data in a browser; undefined elsewhere. */
export function browserDevice(): Device | undefined {
  if (!isBrowser()) return undefined;
  const device: Device = { platform: "web" };
  if (navigator.userAgent) device.userAgent = navigator.userAgent;
  if (navigator.language) device.locale = navigator.language;
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  if (timeZone) device.timezone = timeZone;
  if (typeof screen !== "undefined") {
    device.screen = { width: screen.width, height: screen.height, scale: devicePixelRatio };
  }
  return device;
}

/** Returns the click id in a URL, by default the page's. The rest of the page's URL is not sent, for privacy. */
export function clickInUrl(url = isBrowser() ? location.search : ""): string | undefined {
  const found = CLICK.exec(url)?.[1];
  try {
    return found && decodeURIComponent(found);
  } catch {
    return found;
  }
}

/** Stored launch state, including data that the server has not received yet. */
export interface Launch {
  /** Time of the first launch. */
  firstAt: number;
  /** Number of calls of `reset`. */
  resets?: number;
  /** Whether `configure` was sent at least once. The server may know the device then. */
  tried?: boolean;
  /** Whether the server has accepted `configure` once. */
  configured?: boolean;
  /** The consent that the server has received, as JSON. */
  sentConsent?: string;
  /** Secret that proves the right to erase this device, and whether the server has received it. */
  eraseToken?: string | undefined;
  eraseTokenSent?: boolean;
  /** Whether the server has received the install referrer and the AdServices token. */
  referrerSent?: boolean;
  tokenSent?: boolean;
  /** Latest click id and URL that the server has not received yet. */
  clickId?: string;
  openedUrl?: string;
  /** Latest click id, kept for `getClickId`. */
  lastClickId?: string;
}
