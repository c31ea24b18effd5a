// Decides which conversion value to report. Pure functions. The shared table
// `sdk/tables/conversion_values.json` keeps them consistent with the server's evaluation.

import { decimal } from "./revenue.js";
import type { Coarse, ConversionValue } from "./types.js";

/** A condition on the events in a window. */
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

/** The configuration as sent by the server. */
export interface Document {
  version?: number;
  enabled: boolean;
  currency: string;
  maxAgeSeconds?: number | null;
  /** Exchange rates into `currency`. */
  rates?: Record<string, string | number> | null;
  windows: Window[];
  /** This device's events that only the server knows, such as billing events. */
  server?: Record<string, { count: number; revenue?: number | string | null; window: number }[]> | null;
}

/** Count and revenue of an event in a window, in millionths of the document's currency. */
export interface Counter {
  count: number;
  micros: string;
}

/** A tracked event. */
export interface CountedEvent {
  name: string;
  revenue?: string;
  currency?: string;
}

/** Stored state of the evaluation. */
export interface State {
  /** The window that the counters are for. */
  window: number;
  /** Keys are event names with a leading dot, because an event may be called `__proto__`. */
  counters: Record<string, Counter>;
  /** Events tracked while there was no document. */
  waiting: CountedEvent[];
  /** Last value reported to the platform. */
  sent: ConversionValue | null;
}

export const NEW_STATE: State = { window: 0, counters: {}, waiting: [], sent: null };

/** A document and its age. */
export interface AgedDocument {
  document: Document;
  ageMs: number;
}

const HOUR_MS = 3_600_000;
/** End of each window in hours after the first launch. */
const ENDS = [48, 168, 840];
/** Default maximum age of a document: seven days. */
const MAX_AGE_SECONDS = 604_800;
/** Maximum number of events that wait for a document. */
const WAITING_MAX = 500;

/** Returns the window at a time after first launch; null after the last window. */
export function windowAt(sinceFirstLaunchMs: number): number | null {
  const window = ENDS.findIndex((end) => sinceFirstLaunchMs < end * HOUR_MS);
  return window < 0 ? null : window;
}

const isSet = <T>(value: T | null | undefined): value is T => value !== null && value !== undefined;

/** Converts a decimal to an integer, scaled by this many decimals; further decimals are cut off. Uses BigInt, because
 * floats cannot represent money exactly. */
function scaled(text: string, decimals: number): bigint {
  const [whole, fraction = ""] = text.split(".") as [string, string?];
  return BigInt(whole + fraction.slice(0, decimals).padEnd(decimals, "0"));
}

const micros = (amount: number | string): bigint => scaled(decimal(amount) ?? "0", 6);

/** Converts an amount to the document's currency, rounded to millionths, half away from zero; 0 without a rate. */
function converted(document: Document, amount: string, currency?: string): bigint {
  if (currency === document.currency) return micros(amount);
  const rate = currency ? document.rates?.[currency] : undefined;
  if (!isSet(rate)) return BigInt(0);
  const unit = BigInt(1e9);
  const product = micros(amount) * scaled(String(rate), 9);
  const half = (product < 0 ? BigInt(-1) : BigInt(1)) * (unit / BigInt(2));
  return (product + half) / unit;
}

/** Returns an event's count and revenue: from the device, from the server, and of the implicit install. */
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

/** Returns the first value whose conditions all hold. */
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

/** Returns whether to report the value: not in a locked window, not a lower fine value, not the same value. */
function isWorthACall(update: ConversionValue, sent: ConversionValue | null): boolean {
  if (sent?.window !== update.window) return true;
  // Apple ignores lower values for SKAdNetwork versions before 4, and the app does not know the version.
  const lowers = update.window === 0 && update.fineValue < sent.fineValue;
  const isSame =
    update.fineValue === sent.fineValue &&
    update.coarseValue === sent.coarseValue &&
    update.lockWindow === sent.lockWindow;
  return !sent.lockWindow && !lowers && !isSame;
}

/**
 * Decides which value to report. Called with each tracked event, and without one at first launch and after a fetch.
 * The first call always happens, even without a document, because it registers the install with Apple.
 */
export function evaluate(
  aged: AgedDocument | null,
  before: State,
  sinceFirstLaunchMs: number,
  event?: CountedEvent,
): { state: State; update: ConversionValue | null } {
  const window = windowAt(sinceFirstLaunchMs);
  if (window === null) return { state: before, update: null };
  // A clock that was set back does not reopen a window.
  const start = window > before.window ? { ...NEW_STATE, window, sent: before.sent } : before;
  const state: State = { ...start, waiting: start.waiting.concat(event ?? []).slice(-WAITING_MAX) };
  const document = aged && aged.ageMs <= (aged.document.maxAgeSeconds ?? MAX_AGE_SECONDS) * 1000 ? aged.document : null;
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
