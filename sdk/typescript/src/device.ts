// Device data and attribution evidence: the body of `configure`.

import type { Clock, Consent, Device, InstallReferrer, Maybe, Providers } from "./types.js";

/** Time limit for a provider. It is short, because the first request waits for the providers. */
const PROVIDER_MS = 5_000;
/** Query parameter in which a tracking link passes the click id. */
const CLICK_PARAMETER = "ar_click_id";

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

/** Returns the click id in the page's URL. The rest of the URL is not sent, for privacy. */
export function clickInUrl(): string | undefined {
  return (isBrowser() && new URLSearchParams(location.search).get(CLICK_PARAMETER)) || undefined;
}

/** Stored launch state, including data that the server has not received yet. */
export interface Launch {
  /** Time of the first launch. */
  firstAt: number;
  /** Whether the server has accepted `configure` once. */
  configured?: boolean;
  /** Whether the server has received the install referrer and the AdServices token. */
  referrerSent?: boolean;
  tokenSent?: boolean;
  /** Latest click id and URL that the server has not received yet. */
  clickId?: string;
  openedUrl?: string;
}

/** Data from native providers; unavailable values are left out. */
export interface Evidence {
  installReferrer?: InstallReferrer;
  adServicesToken?: string;
  advertisingId?: string;
  userAgent?: string;
}

/** Calls a provider. Returns undefined if it fails or times out. */
async function ask<T>(provider: () => Maybe<T | null>, clock: Clock): Promise<T | undefined> {
  let timer: unknown;
  const timeout = new Promise<undefined>((resolve) => {
    timer = clock.setTimeout(() => resolve(undefined), PROVIDER_MS);
  });
  try {
    return (await Promise.race([provider(), timeout])) ?? undefined;
  } catch {
    return undefined;
  } finally {
    clock.clearTimeout(timer);
  }
}

/** Returns whether consent allows reading the advertising id: opt-in on iOS, opt-out on Android. */
function mayRead(device: Device, consent: Consent): boolean {
  const { tracking } = consent;
  if (device.platform === "ios") return tracking === "authorized";
  return device.platform === "android" && tracking !== "denied" && tracking !== "restricted";
}

/** Calls the native providers whose data the server has not received yet. */
export async function gather(
  device: Device,
  providers: Providers,
  launch: Launch,
  consent: Consent,
  clock: Clock,
): Promise<Evidence> {
  const { installReferrer, adServicesToken, advertisingId, userAgent } = providers;
  const [referrer, token, id, agent] = await Promise.all([
    installReferrer && device.platform === "android" && !launch.referrerSent
      ? ask(() => installReferrer(), clock)
      : undefined,
    adServicesToken && device.platform === "ios" && !launch.tokenSent ? ask(() => adServicesToken(), clock) : undefined,
    advertisingId && mayRead(device, consent) ? ask(() => advertisingId(), clock) : undefined,
    userAgent && launch.openedUrl ? ask(() => userAgent(), clock) : undefined,
  ]);
  const evidence: Evidence = {};
  if (referrer) evidence.installReferrer = referrer;
  if (token) evidence.adServicesToken = token;
  if (id) evidence.advertisingId = id;
  if (agent) evidence.userAgent = agent;
  return evidence;
}

/** Returns the URL that started the app. */
export function startUrl(providers: Providers, clock: Clock): Promise<string | undefined> {
  const { openedUrl } = providers;
  return openedUrl ? ask(() => openedUrl(), clock) : Promise.resolve(undefined);
}

/** Builds the body of `configure`. */
export function configureBody(
  deviceId: string,
  device: Device,
  launch: Launch,
  consent: Consent,
  evidence: Evidence,
  more: {
    sdkVersion: string;
    userId?: string | undefined;
    userIdSignature?: string | undefined;
    asksReferrer: boolean;
  },
): string {
  const { advertisingId, installReferrer, adServicesToken, userAgent } = evidence;
  const idName = device.platform === "ios" ? "idfa" : "gaid";
  return JSON.stringify({
    deviceId,
    ...device,
    sdkVersion: more.sdkVersion,
    userId: more.userId,
    userIdSignature: more.userIdSignature,
    openedUrl: launch.openedUrl,
    userAgent: userAgent ?? device.userAgent,
    arClickId: launch.clickId,
    [idName]: advertisingId,
    // An empty object means that the store could not be read, which differs from having no store.
    installReferrer: installReferrer ?? (more.asksReferrer && !launch.referrerSent ? {} : undefined),
    adServicesToken,
    consent,
  });
}
