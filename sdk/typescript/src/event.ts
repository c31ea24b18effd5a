import { currencyCode, decimal } from "./revenue.js";
import { utf8 } from "./sha256.js";
import type { Params, Problem, TrackOptions } from "./types.js";
import { uuid } from "./uuid.js";

/** Characters of a name, and bytes of parameters as JSON: the server takes no more. */
const NAME_MAX = 255;
const PARAMS_BYTES_MAX = 16_384;
/** Bytes of an id that the app gives. */
const EVENT_ID_BYTES_MAX = 255;

/** A call of `trackEvent`. */
export interface Tracked {
  name: string;
  params?: Params | undefined;
  options?: TrackOptions | undefined;
  /** What the clock said. */
  at: number;
}

/** An event as it is sent. */
export interface Event {
  eventId: string;
  name: string;
  timestampMs: number;
  revenue?: string;
  currency?: string;
  params?: object;
}

/** 2015-01-01: the server refuses earlier times. */
const EARLIEST_MS = 1_420_070_400_000;

/** Writes an event for sending. A clock before 2015 is wrong: the event goes without a time and gets that of its arrival. */
export function eventJson(event: Event): string {
  const isPlausible = event.timestampMs >= EARLIEST_MS;
  return JSON.stringify(isPlausible ? event : { ...event, timestampMs: undefined });
}

/**
 * Reads what was tracked. Only a name that cannot be one loses the event; money or parameters that cannot be read are
 * left out, and the app is told.
 */
export function readEvent(tracked: Tracked, timestampMs: number, onProblem: (problem: Problem) => void): Event | null {
  const { name } = tracked;
  if (typeof name !== "string" || name === "" || name.includes("\0")) {
    onProblem({ code: "invalid_name", message: "The name of an event must be a text that is not empty." });
    return null;
  }
  // By characters, not halves of them.
  const given = readEventId(tracked.options, onProblem);
  const event: Event = { eventId: given ?? uuid(), name: [...name].slice(0, NAME_MAX).join(""), timestampMs };
  const { eventId } = event;
  const { revenue, currency, ...rest } = tracked.params ?? {};
  if (revenue !== undefined && revenue !== null) {
    const amount = decimal(revenue);
    if (amount !== null) event.revenue = amount;
    else {
      const message = 'revenue must be a number or a decimal such as "9.99"; the event was kept without it.';
      onProblem({ code: "invalid_revenue", message, eventId });
    }
  }
  if (currency !== undefined && currency !== null) {
    const code = currencyCode(currency);
    if (code !== null) event.currency = code;
    else {
      const message = "currency must have three letters, such as EUR; the event was kept without it.";
      onProblem({ code: "invalid_currency", message, eventId });
    }
  }
  if (Object.keys(rest).length > 0) {
    const problem = unfit(rest);
    if (!problem) event.params = rest;
    else onProblem({ code: "invalid_params", message: `params ${problem}; the event was kept without them.`, eventId });
  }
  return event;
}

/** Reads the id that the app gave, if it can be one. */
function readEventId(options: TrackOptions | undefined, onProblem: (problem: Problem) => void): string | undefined {
  const eventId: unknown = options?.eventId;
  if (eventId === undefined || eventId === null) return undefined;
  const fits =
    typeof eventId === "string" &&
    eventId !== "" &&
    !eventId.includes("\0") &&
    utf8(eventId).length <= EVENT_ID_BYTES_MAX;
  if (fits) return eventId;
  const message = "eventId must be a text of 1 to 255 bytes without NUL; the event was kept under a random id.";
  onProblem({ code: "invalid_event_id", message });
  return undefined;
}

/** What is wrong with parameters, if anything is. */
function unfit(params: object): string | undefined {
  try {
    return utf8(JSON.stringify(params)).length > PARAMS_BYTES_MAX ? "must have at most 16 KiB as JSON" : undefined;
  } catch {
    return "must be values that JSON can hold";
  }
}
