import { currencyCode, decimal } from "./revenue.js";
import type { Consent, Params, Problem, TrackOptions } from "./types.js";
import { uuid } from "./uuid.js";

/** Server limits: characters in a name, and bytes of the parameters as JSON. */
const NAME_MAX = 255;
const PARAMS_BYTES_MAX = 16_384;
/** Maximum length of a custom event id in bytes. */
const EVENT_ID_BYTES_MAX = 255;

/** Arguments of a `trackEvent` call. */
export interface TrackCall {
  name: string;
  params?: Params | undefined;
  options?: TrackOptions | undefined;
  /** Time of the call. */
  at: number;
}

/** An event as sent to the server. */
export interface Event {
  eventId: string;
  name: string;
  timestampMs: number;
  revenue?: string;
  currency?: string;
  params?: object;
}

/** 2015-01-01: the server rejects earlier times. */
const EARLIEST_MS = 1_420_070_400_000;

/**
 * Serialises an event with the consent in force. If the clock is before 2015, the time is left out and the server uses
 * the arrival time.
 */
export function eventJson(event: Event, consent: Consent): string {
  const timestampMs = event.timestampMs >= EARLIEST_MS ? event.timestampMs : undefined;
  return JSON.stringify({ ...event, timestampMs, consent });
}

/** Returns the length of a text in UTF-8. Not every React Native engine has TextEncoder. */
export function byteLength(text: string): number {
  const wide = text.replace(/[\ud800-\udbff][\udc00-\udfff]/g, "four");
  return wide.replace(/[\u0800-\uffff]/g, "tri").replace(/[\x80-\u07ff]/g, "bi").length;
}

/**
 * Validates a `trackEvent` call. An event with an invalid name is dropped; invalid revenue or parameters are left out.
 * Both are reported to `onProblem`.
 */
export function readEvent(
  call: TrackCall,
  globalParams: Params,
  timestampMs: number,
  onProblem: (problem: Problem) => void,
): Event | null {
  const { name } = call;
  if (typeof name !== "string" || name === "" || name.includes("\0")) {
    onProblem({ code: "invalid_name", message: "name must be a non-empty string." });
    return null;
  }
  // Cut by code points, so that no surrogate pair is split.
  const customId = readEventId(call.options, onProblem);
  const event: Event = { eventId: customId ?? uuid(), name: [...name].slice(0, NAME_MAX).join(""), timestampMs };
  const { eventId } = event;
  const { revenue, currency, ...own } = call.params ?? {};
  const rest = { ...globalParams, ...own };
  if (revenue !== undefined && revenue !== null) {
    const amount = decimal(revenue);
    if (amount !== null) event.revenue = amount;
    else {
      const message = 'revenue must be a number or text such as "9.99"; it is left out.';
      onProblem({ code: "invalid_revenue", message, eventId });
    }
  }
  if (currency !== undefined && currency !== null) {
    const code = currencyCode(currency);
    if (code !== null) event.currency = code;
    else {
      const message = "currency must be a code such as EUR; it is left out.";
      onProblem({ code: "invalid_currency", message, eventId });
    }
  }
  if (Object.keys(rest).length > 0) {
    const problem = paramsProblem(rest);
    if (!problem) event.params = rest;
    else onProblem({ code: "invalid_params", message: `params ${problem}; they are left out.`, eventId });
  }
  return event;
}

/** Returns the custom event id if it is valid. */
function readEventId(options: TrackOptions | undefined, onProblem: (problem: Problem) => void): string | undefined {
  const eventId: unknown = options?.eventId;
  if (eventId === undefined || eventId === null) return undefined;
  const isValid =
    typeof eventId === "string" &&
    eventId !== "" &&
    !eventId.includes("\0") &&
    byteLength(eventId) <= EVENT_ID_BYTES_MAX;
  if (isValid) return eventId;
  const message = "eventId must have 1 to 255 bytes without NUL.";
  onProblem({ code: "invalid_event_id", message });
  return undefined;
}

/** Returns what is wrong with the parameters, if anything. */
function paramsProblem(params: object): string | undefined {
  try {
    return byteLength(JSON.stringify(params)) > PARAMS_BYTES_MAX ? "must be at most 16 KiB as JSON" : undefined;
  } catch {
    return "must be JSON";
  }
}
