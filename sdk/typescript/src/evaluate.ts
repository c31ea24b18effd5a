// Which conversion value the platform is to be told. Pure: the document and what happened in, a decision out. The
// shared table `sdk/tables/conversion_values.json` holds it to the server's own evaluation.

import { decimal } from "./revenue.js";
import type { Coarse, ConversionValue } from "./types.js";

/** A condition on the events of the window. */
export interface Condition {
  event: string;
  minCount?: number | null;
  maxCount?: number | null;
  minRevenue?: number | string | null;
  maxRevenue?: number | string | null;
}

export interface Value {
  fineValue?: number | null;
  coarseValue: Coarse;
  lock?: boolean | null;
  conditions: Condition[];
}

export interface Window {
  index: number;
  enabled?: boolean | null;
  lockOn?: { fineValue?: number | null; coarseValue?: Coarse | null; event?: string | null } | null;
  values: Value[];
}

/** The configuration, as the server hands it out. */
export interface Document {
  version?: number;
  enabled: boolean;
  currency: string;
  maxAgeSeconds?: number | null;
  /** Units of `currency` for one unit of another. */
  rates?: Record<string, string | number> | null;
  windows: Window[];
  /** Events of this device that only the server knows. */
  server?: Record<string, { count: number; revenue?: number | string | null; window: number }[]> | null;
}

/** How often an event happened in a window, and what it brought in millionths of the document's currency. */
export interface Counter {
  count: number;
  micros: string;
}

/** An event that the app tracked. */
export interface Happened {
  name: string;
  revenue?: string;
  currency?: string;
}

/** What the device remembers. */
export interface State {
  /** The window of the counters. */
  window: number;
  /** By the event's name behind a dot: an event may be called `__proto__`. */
  counters: Record<string, Counter>;
  /** What happened while there was no document to decide by. */
  waiting: Happened[];
  /** The last call to the platform. */
  sent: ConversionValue | null;
}

export const NEW_STATE: State = { window: 0, counters: {}, waiting: [], sent: null };

/** A document and how old it is. */
export interface Held {
  document: Document;
  ageMs: number;
}

const HOUR_MS = 3_600_000;
/** Hours after the first launch at which the windows end. */
const ENDS = [48, 168, 840];
/** How old a document may be where it does not say so itself: seven days. */
const MAX_AGE_SECONDS = 604_800;
/** Events that wait for a document; more would only be counted into the same few numbers. */
const WAITING_MAX = 500;

/** The window of a moment; nothing when the last is over. */
export function windowAt(sinceFirstLaunchMs: number): number | null {
  const window = ENDS.findIndex((end) => sinceFirstLaunchMs < end * HOUR_MS);
  return window < 0 ? null : window;
}

const isSet = <T>(value: T | null | undefined): value is T => value !== null && value !== undefined;

/** A decimal in units of its last of so many decimals; further ones are cut. Whole numbers without limit: no float
 * holds money. */
function scaled(text: string, decimals: number): bigint {
  const [whole, fraction = ""] = text.split(".") as [string, string?];
  return BigInt(whole + fraction.slice(0, decimals).padEnd(decimals, "0"));
}

const micros = (amount: number | string): bigint => scaled(decimal(amount) ?? "0", 6);

/** An amount in the document's currency, to the nearest millionth, halves away from zero. Without a rate it is none. */
function converted(document: Document, amount: string, currency?: string): bigint {
  if (currency === document.currency) return micros(amount);
  const rate = currency ? document.rates?.[currency] : undefined;
  if (!isSet(rate)) return BigInt(0);
  const unit = BigInt(1e9);
  const product = micros(amount) * scaled(String(rate), 9);
  const half = (product < 0 ? BigInt(-1) : BigInt(1)) * (unit / BigInt(2));
  return (product + half) / unit;
}

/** How often and for how much: what the device counted, what only the server knows, and the install. */
function total(document: Document, state: State, event: string): { count: number; sum: bigint } {
  const own = state.counters[`.${event}`];
  let count = own?.count ?? 0;
  let sum = BigInt(own?.micros ?? 0);
  if (event === "install" && state.window === 0) count++;
  const known = new Map(Object.entries(document.server ?? {})).get(event) ?? [];
  for (const entry of known) {
    if (entry.window !== state.window) continue;
    count += entry.count;
    sum += micros(entry.revenue ?? 0);
  }
  return { count, sum };
}

function holds(document: Document, state: State, condition: Condition): boolean {
  const { count, sum } = total(document, state, condition.event);
  const { minCount, maxCount, minRevenue, maxRevenue } = condition;
  return !(
    (isSet(minCount) && count < minCount) ||
    (isSet(maxCount) && count > maxCount) ||
    (isSet(minRevenue) && sum < micros(minRevenue)) ||
    (isSet(maxRevenue) && sum >= micros(maxRevenue))
  );
}

/** The first value, in order, whose conditions all hold. */
function decide(document: Document, state: State): ConversionValue | null {
  const { window } = state;
  const rules = document.windows.find(({ index, enabled }) => index === window && enabled !== false);
  if (!document.enabled || !rules) return null;
  const value = rules.values.find(({ conditions }) => conditions.every((one) => holds(document, state, one)));
  if (!value) return null;
  const { lockOn } = rules;
  const isLockedOn =
    (isSet(lockOn?.fineValue) && lockOn.fineValue === value.fineValue) ||
    (isSet(lockOn?.coarseValue) && lockOn.coarseValue === value.coarseValue) ||
    (isSet(lockOn?.event) && total(document, state, lockOn.event).count > 0);
  return {
    window,
    fineValue: value.fineValue ?? 0,
    coarseValue: value.coarseValue,
    lockWindow: value.lock === true || isLockedOn,
  };
}

/** Not in a window that is locked, not a lower fine value, and nothing that changes nothing. */
function isWorthACall(update: ConversionValue, sent: ConversionValue | null): boolean {
  if (sent?.window !== update.window) return true;
  // Apple ignores a lower value for older ads, and the app cannot know which apply.
  const lowers = update.window === 0 && update.fineValue < sent.fineValue;
  const isSame =
    update.fineValue === sent.fineValue &&
    update.coarseValue === sent.coarseValue &&
    update.lockWindow === sent.lockWindow;
  return !sent.lockWindow && !lowers && !isSame;
}

/**
 * Decides what to tell the platform: at first launch and after a fetch without an event, else with the one just
 * tracked. The first call is made whatever the document says, and even without one: it registers the install.
 */
export function evaluate(
  held: Held | null,
  before: State,
  sinceFirstLaunchMs: number,
  event?: Happened,
): { state: State; update: ConversionValue | null } {
  const window = windowAt(sinceFirstLaunchMs);
  if (window === null) return { state: before, update: null };
  // A clock that went back opens no window again.
  const start = window > before.window ? { ...NEW_STATE, window, sent: before.sent } : before;
  const state: State = { ...start, waiting: start.waiting.concat(event ?? []).slice(-WAITING_MAX) };
  const document = held && held.ageMs <= (held.document.maxAgeSeconds ?? MAX_AGE_SECONDS) * 1000 ? held.document : null;
  if (document) {
    state.counters = { ...state.counters };
    for (const { name, revenue, currency } of state.waiting.splice(0)) {
      const { count = 0, micros: sum = "0" } = state.counters[`.${name}`] ?? {};
      const more = revenue === undefined ? BigInt(0) : converted(document, revenue, currency);
      state.counters[`.${name}`] = { count: count + 1, micros: String(BigInt(sum) + more) };
    }
  }
  const wanted = document && decide(document, state);
  const first: ConversionValue = { window: state.window, fineValue: 0, coarseValue: "low", lockWindow: false };
  const update = wanted ? (isWorthACall(wanted, state.sent) ? wanted : null) : state.sent ? null : first;
  return { state: { ...state, sent: update ?? state.sent }, update };
}
