// What an app that uses the SDK sees. Nothing here names a type of the browser or of React Native, so that the
// same declarations serve both.

/** A value, at once or later. */
export type Maybe<T> = T | Promise<T>;

/**
 * Where the SDK keeps what must survive a restart. Answers may come at once or as promises; with one that answers at
 * once, an event is stored before `trackEvent` returns.
 */
export interface Storage {
  get(key: string): Maybe<string | null>;
  set(key: string, value: string): Maybe<void>;
  remove(key: string): Maybe<void>;
  /** Every key, also of others. */
  keys(): Maybe<string[]>;
  /** Whether others, such as another tab, may use it at the same time. */
  shared?: boolean;
}

/** Time, for tests. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  setTimeout(run: () => void, ms: number): unknown;
  clearTimeout(handle: unknown): void;
}

/** A request. */
export interface HttpRequest {
  method: string;
  headers: Record<string, string>;
  body?: string;
  /** Whether it should outlive the page. */
  keepalive?: boolean;
  signal?: unknown;
}

/** As much of an answer as is looked at. */
export interface HttpAnswer {
  status: number;
  headers: { get(name: string): string | null };
  text(): Promise<string>;
}

/** The network: `fetch`, or something that behaves like it. */
export type Fetch = (url: string, request: HttpRequest) => Promise<HttpAnswer>;

/** Runs something unless another tab runs it at this moment; tells whether it ran. */
export type Lock = (name: string, run: () => Promise<void>) => Promise<boolean>;

export type Platform = "ios" | "android" | "web";

/** What the device is. In a browser all of it is found out. */
export interface Device {
  platform: Platform;
  osVersion?: string;
  model?: string;
  manufacturer?: string;
  appVersion?: string;
  bundleId?: string;
  locale?: string;
  timezone?: string;
  screen?: { width: number; height: number; scale: number };
  /** Apple's id of the vendor. */
  idfv?: string;
  /** Of the browser, or of the platform's web view. */
  userAgent?: string;
}

/** What the Play Store's install referrer library gives. */
export interface InstallReferrer {
  referrer?: string;
  clickAtSeconds?: number;
  installBeginAtSeconds?: number;
  clickAtServerSeconds?: number;
  installBeginAtServerSeconds?: number;
}

/** What only the native side can find out. Each is optional; one that fails or hangs holds nothing up. */
export interface Providers {
  /** Android: the Play Store's install referrer. Asked until it was delivered once. */
  installReferrer?(): Maybe<InstallReferrer | null>;
  /** iOS: the token of AdServices. Asked until it was delivered once. */
  adServicesToken?(): Maybe<string | null>;
  /** IDFA or GAID. Asked only where the consent allows it. */
  advertisingId?(): Maybe<string | null>;
  /** The URL that started the app, if one did. */
  openedUrl?(): Maybe<string | null>;
  /** The user agent of the platform's web view. Asked with a URL that opened the app: some ad networks need it. */
  userAgent?(): Maybe<string | null>;
}

/** What the person agreed to; what is left out was not asked. */
export interface Consent {
  adUserData?: boolean | null;
  adPersonalization?: boolean | null;
  tracking?: "authorized" | "denied" | "notDetermined" | "restricted" | null;
}

/** What an install is credited to. */
export interface Attribution {
  id: string;
  network: string;
  matchType: string;
  confidence: number | null;
  linkId: string | null;
  clickId: string | null;
  campaign: Record<string, string | null>;
  deepLink: string | null;
  customData: Record<string, string>;
  queryParams: Record<string, string>;
  reason: string;
  decidedAt: string;
}

/** A link of the app's that opened it. */
export interface OpenedLink {
  linkId: string;
  deepLink: string | null;
  customData: Record<string, string>;
  queryParams: Record<string, string>;
}

export type Coarse = "low" | "medium" | "high";

/** What the platform is to be told. */
export interface ConversionValue {
  /** 0 in the windows 1 and 2, where Apple does not look at it. */
  fineValue: number;
  coarseValue: Coarse;
  lockWindow: boolean;
  /** 0, 1 or 2. */
  window: number;
}

/** Something that the app may want to know; nothing of it needs an answer. */
export interface Problem {
  code:
    | "invalid_name"
    | "invalid_revenue"
    | "invalid_currency"
    | "invalid_event_id"
    | "invalid_params"
    | "invalid_matching"
    | "queue_full"
    | "storage_failed"
    | "event_rejected"
    | "request_refused"
    | "invalid_api_key"
    | "callback_failed";
  message: string;
  eventId?: string;
}

/** How an event is recorded. */
export interface TrackOptions {
  /** An id of your own, 1 to 255 bytes. A web event of the same id and kind is the same event, and counts once. */
  eventId?: string | undefined;
}

/** What an event may say. `revenue` and `currency` are money; everything else is kept as it is. */
export interface Params {
  /** A number, or a decimal such as "9.99". */
  revenue?: number | string | null;
  /** ISO 4217, three letters. */
  currency?: string | null;
  [name: string]: unknown;
}

export interface Options {
  /** The app's SDK key, `pk_live_…` or `pk_test_…`. */
  key: string;
  /** Where Tributary is, such as `https://links.example.com`. */
  baseUrl: string;
  userId?: string;
  /** What it runs on. Needed outside of browsers; see `fromReactNative`. */
  device?: Device;
  /** An id of your own for the device, instead of one that is made and kept. */
  deviceId?: string;
  providers?: Providers;
  /** Called when the decision is known, and when a better one is made. */
  onAttribution?(attribution: Attribution): void;
  /** Called when a link of the app's opened it. */
  onOpenedLink?(link: OpenedLink): void;
  /** Passes a conversion value on to the platform. Without it none are looked at. */
  onConversionValue?(value: ConversionValue): Maybe<void>;
  onProblem?(problem: Problem): void;
  /** Default: localStorage, else IndexedDB, else memory. */
  storage?: Storage;
  clock?: Clock;
  fetch?: Fetch;
  /** Default: the browser's own locks, else a lease in the storage if that is shared. */
  lock?: Lock;
  /** Tells when the app goes to the background and comes back; gives a function that ends it. */
  lifecycle?(onChange: (isActive: boolean) => void): () => void;
  /** From 0 to 1, for tests: what spreads the retries. */
  random?(): number;
  /** Events that are kept until they are delivered; 1,000. */
  queueLimit?: number;
  /** How long an event waits for others to go with it; 1,000. */
  flushDelayMs?: number;
}
