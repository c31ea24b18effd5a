// The public types. They use no browser or React Native types, so that they work on both platforms.

import type { native } from "./native.js";

/** A value, or a promise that resolves to it. */
export type Maybe<T> = T | Promise<T>;

/**
 * Persistent storage. Methods may be synchronous or return promises. With a synchronous storage, an event is stored
 * before `trackEvent` returns.
 */
export interface Storage {
  get(key: string): Maybe<string | null>;
  set(key: string, value: string): Maybe<void>;
  remove(key: string): Maybe<void>;
  /** Returns all keys, including those of other libraries. */
  keys(): Maybe<string[]>;
  /** Whether other instances, such as another tab, may use the storage concurrently. */
  shared?: boolean;
}

/** A clock; replaceable for tests. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  setTimeout(run: () => void, ms: number): unknown;
  clearTimeout(handle: unknown): void;
}

/** An HTTP request. */
export interface HttpRequest {
  method: string;
  headers: Record<string, string>;
  body?: string;
  /** Whether the request should outlive the page. */
  keepalive?: boolean;
  signal?: unknown;
}

/** The parts of an HTTP response that the SDK uses. */
export interface HttpAnswer {
  status: number;
  headers: { get(name: string): string | null };
  text(): Promise<string>;
}

/** `fetch`, or a compatible function. */
export type Fetch = (url: string, request: HttpRequest) => Promise<HttpAnswer>;

/** Runs a function unless another tab is running it. Resolves to whether it ran. */
export type Lock = (name: string, run: () => Promise<void>) => Promise<boolean>;

export type Platform = "ios" | "android" | "web";

/** Device data. In a browser, the SDK detects it. */
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
  /** Apple's identifier for vendor. */
  idfv?: string;
  /** User agent of the browser or of the platform's web view. */
  userAgent?: string;
}

/** Result of the Play Install Referrer library. */
export interface InstallReferrer {
  referrer?: string;
  clickAtSeconds?: number;
  installBeginAtSeconds?: number;
  clickAtServerSeconds?: number;
  installBeginAtServerSeconds?: number;
}

/** Data that only native code can provide. Each provider is optional; failures and timeouts are ignored. */
export interface Providers {
  /** Android: the Play Store's install referrer. Called at every start until the server has received it. */
  installReferrer?(): Maybe<InstallReferrer | null>;
  /** iOS: the AdServices token. Called at every start until the server has received it. */
  adServicesToken?(): Maybe<string | null>;
  /** IDFA or GAID. Called only if the user's consent allows it. */
  advertisingId?(): Maybe<string | null>;
  /** The URL that started the app, if any. */
  openedUrl?(): Maybe<string | null>;
  /** User agent of the platform's web view. Called when a URL opened the app, because some ad networks require it. */
  userAgent?(): Maybe<string | null>;
  /** Secure random bytes, needed for `eraseMe` where `crypto.getRandomValues` is missing, as in old React Native. */
  randomBytes?(count: number): ArrayLike<number>;
}

/** The user's consent. Omitted fields and null stay unchanged; fields that were never set are unknown. */
export interface Consent {
  adUserData?: boolean | null;
  adPersonalization?: boolean | null;
  tracking?: "authorized" | "denied" | "notDetermined" | "restricted" | null;
}

/** Attribution of an install. */
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

/** A link that opened the app. */
export interface OpenedLink {
  linkId: string;
  deepLink: string | null;
  customData: Record<string, string>;
  queryParams: Record<string, string>;
}

export type Coarse = "low" | "medium" | "high";

/** A conversion value to report to the platform. */
export interface ConversionValue {
  /** The fine value; 0 in windows 1 and 2, because Apple ignores it there. */
  fineValue: number;
  coarseValue: Coarse;
  lockWindow: boolean;
  /** 0, 1 or 2. */
  window: number;
}

/** A problem that the SDK reports to the app. The app does not have to react. */
export interface Problem {
  code:
    | "invalid_name"
    | "invalid_revenue"
    | "invalid_currency"
    | "invalid_event_id"
    | "invalid_params"
    | "invalid_matching"
    | "missing_native"
    | "no_secure_random"
    | "queue_full"
    | "storage_failed"
    | "event_rejected"
    | "request_refused"
    | "erase_refused"
    | "invalid_api_key"
    | "wrong_base_url"
    | "cors_refused"
    | "request_blocked"
    | "server_unreachable"
    | "callback_failed";
  message: string;
  eventId?: string;
}

/** Options for `trackEvent`. */
export interface TrackOptions {
  /** Your own event id, 1 to 255 bytes. A web event with the same id and kind counts as the same event. */
  eventId?: string | undefined;
}

/** Event parameters. `revenue` and `currency` set the amount; everything else is stored unchanged. */
export interface Params {
  /** A number or a decimal string such as "9.99". */
  revenue?: number | string | null;
  /** The three-letter ISO 4217 code. */
  currency?: string | null;
  [name: string]: unknown;
}

/** What the SDK writes to the console: nothing, problems, or also every request. */
export type LogLevel = "none" | "warn" | "debug";

export interface Options {
  /** The app's SDK key, `pk_live_…` or `pk_test_…`. */
  key: string;
  /** URL of your Tributary server, such as `https://links.example.com`. */
  baseUrl: string;
  /** The user's consent, like a call of `setConsent` before anything is sent. */
  consent?: Consent;
  userId?: string;
  /** Signature of the user id, computed by your backend. */
  userIdSignature?: string;
  /** Device data. Required outside a browser; see `fromReactNative`. */
  device?: Device;
  /** Your own device id instead of a generated one. */
  deviceId?: string;
  providers?: Providers;
  /** Called when the attribution is known, and when it improves. */
  onAttribution?(attribution: Attribution): void;
  /** Called when a link opened the app. */
  onOpenedLink?(link: OpenedLink): void;
  /** Passes a conversion value to the platform. Without it, conversion values are not evaluated. */
  onConversionValue?(value: ConversionValue): Maybe<void>;
  /** `native` of this package: required for `providers` and `onConversionValue`. `fromReactNative` sets it. */
  native?: typeof native;
  onProblem?(problem: Problem): void;
  /** Default: "warn". */
  logLevel?: LogLevel;
  /** Browser: tracks `page_view` on load and when the path changes. */
  pageViews?: boolean;
  /** Where the SDK stores its data. Default: localStorage, otherwise memory. */
  storage?: Storage;
  clock?: Clock;
  fetch?: Fetch;
  /** Lets only one tab send at a time. Default: Web Locks, if the browser has them; see `leaseLock`. */
  lock?: Lock;
  /** Subscribes to the app going to the background and coming back. Returns a function that unsubscribes. */
  lifecycle?(onChange: (isActive: boolean) => void): () => void;
  /** Random numbers from 0 to 1 for jitter; replaceable for tests. */
  random?(): number;
  /** Maximum number of queue entries. Default: 1,000. */
  queueLimit?: number;
  /** How long the SDK collects events for a batch, in milliseconds. Default: 1,000. */
  flushDelayMs?: number;
}
