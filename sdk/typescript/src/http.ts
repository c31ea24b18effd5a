import { byteLength } from "./event.js";
import type { Clock, Fetch, HttpAnswer, HttpRequest, Problem } from "./types.js";
import { VERSION } from "./version.js";

/** Request timeout: long enough for slow mobile networks, but limited, because a hanging request blocks the queue. */
const TIMEOUT_MS = 20_000;
/** Size limit for keepalive requests. Browsers allow 64 KiB in total, including beacons. */
export const KEEPALIVE_BYTES = 30_000;
/** Maximum `Retry-After` that is honoured. */
const RETRY_AFTER_MAX_MS = 3_600_000;

/** Outcome of a request. */
export type Outcome =
  /** Accepted. */
  | { kind: "done"; data: unknown; etag: string | null }
  /** Not modified (304). */
  | { kind: "same" }
  /** No response, or a temporary error. The request may have arrived, so it is resent unchanged. */
  | { kind: "later"; answered: boolean; afterMs: number; foreign?: boolean }
  /** Permanently rejected. */
  | { kind: "refused"; code: string }
  /** Invalid SDK key. */
  | { kind: "locked" }
  /** The server disabled the SDK. */
  | { kind: "disabled" };

/** Dependencies of the HTTP client. */
export interface HttpContext {
  baseUrl: string;
  key: string;
  clock: Clock;
  fetch: Fetch;
  onProblem(problem: Problem): void;
  /** Called when a request got no response. */
  onFailure(url: string): void;
  log(text: string): void;
}

const later = (answered: boolean, afterMs = 0): Outcome => ({ kind: "later", answered, afterMs });

/** HTTP client for the tracking endpoints. */
export class Http {
  private isForeignReported = false;

  constructor(private readonly context: HttpContext) {}

  /** Returns an endpoint's URL with the key in the query, because beacons cannot send headers. */
  beaconUrl(endpoint: string): string {
    return `${this.url(endpoint)}?key=${encodeURIComponent(this.context.key)}`;
  }

  post(endpoint: string, body: string): Promise<Outcome> {
    const headers = { "Content-Type": "application/json" };
    const keepalive = byteLength(body) < KEEPALIVE_BYTES;
    return this.request(this.url(endpoint), { method: "POST", headers, body, keepalive });
  }

  url(endpoint: string): string {
    return `${this.context.baseUrl.replace(/\/+$/, "")}/api/track/${endpoint}`;
  }

  async request(url: string, request: HttpRequest): Promise<Outcome> {
    const { clock, key, log, onFailure } = this.context;
    const abort = typeof AbortController === "undefined" ? undefined : new AbortController();
    let timer: unknown;
    const timeout = new Promise<Outcome>((resolve) => {
      timer = clock.setTimeout(() => {
        resolve(later(false));
        abort?.abort();
      }, TIMEOUT_MS);
    });
    const headers = { ...request.headers, "X-Tributary-Key": key, "X-SDK-Version": VERSION };
    const send = async (): Promise<Outcome> => {
      const answer = await this.context.fetch(url, { ...request, headers, ...(abort && { signal: abort.signal }) });
      return this.classify(answer, await answer.text());
    };
    try {
      const outcome = await Promise.race([send(), timeout]);
      log(`${request.method} ${url}: ${outcome.kind}`);
      return outcome;
    } catch (error) {
      log(`${request.method} ${url}: ${String(error)}`);
      onFailure(url);
      return later(false);
    } finally {
      clock.clearTimeout(timer);
    }
  }

  /**
   * Classifies a response. Only recognisable Tributary responses count: a captive portal returns 200 for everything,
   * and trusting it would lose events.
   */
  private classify(answer: HttpAnswer, text: string): Outcome {
    const { status } = answer;
    if (status === 204) return { kind: "done", data: null, etag: null };
    if (status === 304) return { kind: "same" };
    const body = parsed(text);
    if (status >= 200 && status < 300 && body?.data) {
      return { kind: "done", data: body.data, etag: answer.headers.get("ETag") };
    }
    if (status >= 500 || status === 429 || status === 408) return later(true, retryAfter(answer));
    const code = body?.error?.code;
    if (status < 400 || status === 404 || status === 405 || typeof code !== "string") return this.foreign(status, text);
    if (code === "sdk_disabled") return { kind: "disabled" };
    return status === 401 ? { kind: "locked" } : { kind: "refused", code };
  }

  /** Reports a response that is not from Tributary's endpoints, once. */
  private foreign(status: number, text: string): Outcome {
    const what = /^\s*</.test(text) ? `${status} with an HTML page` : status;
    const advice = "Check baseUrl, or sign in to the Wi-Fi.";
    const message = `${this.context.baseUrl} answers ${what}, not like a Tributary server. ${advice}`;
    if (!this.isForeignReported) this.context.onProblem({ code: "wrong_base_url", message });
    this.isForeignReported = true;
    return { kind: "later", answered: false, afterMs: 0, foreign: true };
  }
}

function parsed(text: string): { data?: unknown; error?: { code?: unknown } } | null {
  try {
    return JSON.parse(text) as ReturnType<typeof parsed>;
  } catch {
    // Not a Tributary response.
    return null;
  }
}

function retryAfter(answer: HttpAnswer): number {
  const seconds = Number(answer.headers.get("Retry-After"));
  return seconds > 0 ? Math.min(seconds * 1000, RETRY_AFTER_MAX_MS) : 0;
}
