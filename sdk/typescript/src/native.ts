// The parts of the SDK that only native apps need. They are passed in, so that web pages do not load them.

import { conversionValues } from "./conversions.js";
import type { Launch } from "./device.js";
import type { Privacy } from "./privacy.js";
import type { Clock, Consent, Device, Maybe, Providers } from "./types.js";

/** Time limit for a provider. It is short, because the first request waits for the providers. */
const PROVIDER_MS = 5_000;

/** Data from native providers. */
export interface Evidence {
  /** Returns the fields of `configure` that the consent allows at this moment; unavailable values are left out. */
  fields(): object;
  /** What to note when the server has received them. */
  sent: Partial<Launch>;
}

/** Calls a provider. Returns undefined if it is missing, fails or times out. */
async function ask<T>(provider: (() => Maybe<T | null>) | undefined | false, clock: Clock): Promise<T | undefined> {
  if (!provider) return undefined;
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
function mayRead(device: Device, { tracking }: Consent): boolean {
  if (device.platform === "ios") return tracking === "authorized";
  return device.platform === "android" && tracking !== "denied" && tracking !== "restricted";
}

/** Calls the native providers whose data the server has not received yet. */
async function gather(
  device: Device,
  providers: Providers,
  launch: Launch,
  privacy: Privacy,
  clock: Clock,
): Promise<Evidence> {
  const asksReferrer = device.platform === "android" && providers.installReferrer && !launch.referrerSent;
  const asksToken = device.platform === "ios" && !launch.tokenSent;
  const [referrer, adServicesToken, id, userAgent] = await Promise.all([
    ask(asksReferrer && (() => providers.installReferrer!()), clock),
    ask(asksToken && providers.adServicesToken && (() => providers.adServicesToken!()), clock),
    ask(mayRead(device, privacy.record) && providers.advertisingId && (() => providers.advertisingId!()), clock),
    ask(launch.openedUrl !== undefined && providers.userAgent && (() => providers.userAgent!()), clock),
  ]);
  const idName = device.platform === "ios" ? "idfa" : "gaid";
  return {
    fields: () => ({
      // An empty object means that the store could not be read, which differs from having no store.
      installReferrer: referrer ?? (asksReferrer ? {} : undefined),
      adServicesToken,
      ...(userAgent && { userAgent }),
      // Consent may have been withdrawn since the id was read.
      ...(mayRead(device, privacy.record) && { [idName]: id }),
    }),
    sent: { ...(referrer && { referrerSent: true }), ...(adServicesToken && { tokenSent: true }) },
  };
}

/** Returns the URL that started the app. */
const startUrl = ({ openedUrl }: Providers, clock: Clock): Promise<string | undefined> =>
  ask(openedUrl && (() => openedUrl()), clock);

const BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** Returns 32 secure random bytes in base64url. Old React Native has neither a secure source nor an encoder. */
function secret({ randomBytes }: Providers = {}): string | undefined {
  try {
    const bytes = randomBytes?.(32) ?? crypto.getRandomValues(new Uint8Array(32));
    // Each of the 43 characters encodes six bits, which are in one or two bytes.
    const pair = (at: number): number => (bytes[at]! << 8) | bytes[at + 1]!;
    const sixBits = (i: number): number => (pair((i * 6) >> 3) >> (10 - ((i * 6) & 7))) & 63;
    if (bytes.length === 32) return Array.from({ length: 43 }, (_, i) => BASE64URL[sixBits(i)]).join("");
  } catch {
    // Reported as `no_secure_random`.
  }
  return undefined;
}

/** Native providers and conversion values. Pass it to `configure` as `native`; `fromReactNative` does so. */
export const native = { gather, startUrl, conversionValues, secret };
