// What the device is and what brought it here: the body of `configure`.

import type { Clock, Consent, Device, InstallReferrer, Maybe, Providers } from "./types.js";

/** How long a provider may take. The first answer of the server waits for it. */
const PROVIDER_MS = 5_000;
/** The parameter by which a tracking link hands its click to the page. */
const CLICK_PARAMETER = "ar_click_id";

const isBrowser = (): boolean => typeof document !== "undefined" && typeof location !== "undefined";

/** What a browser tells; nothing outside of one. */
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

/** The click that led to this page. Not the whole URL: what else stands in it is none of our business. */
export function clickInUrl(): string | undefined {
  return (isBrowser() && new URLSearchParams(location.search).get(CLICK_PARAMETER)) || undefined;
}

/** What is kept of the first launch, and of what has not been delivered yet. */
export interface Launch {
  /** When the app ran for the first time. */
  firstAt: number;
  /** Whether the server has answered once. */
  configured?: boolean;
  /** Whether what only the native side knows has been delivered. */
  referrerSent?: boolean;
  tokenSent?: boolean;
  /** The latest click and URL that are still to be delivered. */
  clickId?: string;
  openedUrl?: string;
}

/** What the native side says, with what could not be asked left out. */
export interface Evidence {
  installReferrer?: InstallReferrer;
  adServicesToken?: string;
  advertisingId?: string;
  userAgent?: string;
}

/** Asks a provider. One that fails or hangs gives nothing. */
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

/** Whether the person lets the advertising id be read. Apple's needs a yes, Google's the absence of a no. */
function mayRead(device: Device, consent: Consent): boolean {
  const { tracking } = consent;
  if (device.platform === "ios") return tracking === "authorized";
  return device.platform === "android" && tracking !== "denied" && tracking !== "restricted";
}

/** Asks the native side for what is still to be delivered. */
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

/** The URL that started the app. */
export function startUrl(providers: Providers, clock: Clock): Promise<string | undefined> {
  const { openedUrl } = providers;
  return openedUrl ? ask(() => openedUrl(), clock) : Promise.resolve(undefined);
}

/** The body of `configure`. */
export function configureBody(
  deviceId: string,
  device: Device,
  launch: Launch,
  consent: Consent,
  evidence: Evidence,
  more: { sdkVersion: string; userId?: string | undefined; asksReferrer: boolean },
): string {
  const { advertisingId, installReferrer, adServicesToken, userAgent } = evidence;
  const idName = device.platform === "ios" ? "idfa" : "gaid";
  return JSON.stringify({
    deviceId,
    ...device,
    sdkVersion: more.sdkVersion,
    userId: more.userId,
    openedUrl: launch.openedUrl,
    userAgent: userAgent ?? device.userAgent,
    arClickId: launch.clickId,
    [idName]: advertisingId,
    // An empty object says that the store could not be asked, which is not the same as nothing to ask.
    installReferrer: installReferrer ?? (more.asksReferrer && !launch.referrerSent ? {} : undefined),
    adServicesToken,
    consent,
  });
}
