import { utf8 } from "./sha256.js";
import type { Clock, Fetch, HttpAnswer, HttpRequest } from "./types.js";

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
  | { kind: "later"; answered: boolean; afterMs: number }
  /** Permanently rejected. */
  | { kind: "refused"; code: string; status: number }
  /** Invalid SDK key. */
  | { kind: "locked" }
  /** The server disabled the SDK. */
  | { kind: "disabled" };

const later = (answered: boolean, afterMs = 0): Outcome => ({ kind: "later", answered, afterMs });

/** HTTP client for the tracking endpoints. */
export class Http {
  constructor(
    private readonly baseUrl: string,
    private readonly key: string,
    private readonly version: string,
    private readonly fetch: Fetch,
    private readonly clock: Clock,
  ) {}

  /** Returns an endpoint's URL with the key in the query, because beacons cannot send headers. */
  beaconUrl(endpoint: string): string {
    return `${this.url(endpoint)}?key=${encodeURIComponent(this.key)}`;
  }

  post(endpoint: string, body: string): Promise<Outcome> {
    const headers = { "Content-Type": "application/json" };
    const keepalive = utf8(body).length < KEEPALIVE_BYTES;
    return this.request(this.url(endpoint), { method: "POST", headers, body, keepalive });
  }

  get(endpoint: string, query: string, etag: string | null): Promise<Outcome> {
    const headers: Record<string, string> = etag ? { "If-None-Match": etag } : {};
    return this.request(`${this.url(endpoint)}?${query}`, { method: "GET", headers });
  }

  private url(endpoint: string): string {
    return `${this.baseUrl.replace(/\/+$/, "")}/api/track/${endpoint}`;
  }

  private async request(url: string, request: HttpRequest): Promise<Outcome> {
    const abort = typeof AbortController === "undefined" ? undefined : new AbortController();
    let timer: unknown;
    const timeout = new Promise<never>((_, reject) => {
      timer = this.clock.setTimeout(() => {
        abort?.abort();
        reject(new Error("timeout"));
      }, TIMEOUT_MS);
    });
    const headers = { ...request.headers, "X-Tributary-Key": this.key, "X-SDK-Version": this.version };
    const send = async (): Promise<Outcome> => {
      const answer = await this.fetch(url, { ...request, headers, ...(abort && { signal: abort.signal }) });
      return classify(answer, await answer.text());
    };
    try {
      return await Promise.race([send(), timeout]);
    } catch {
      return later(false);
    } finally {
      this.clock.clearTimeout(timer);
    }
  }
}

/**
 * Classifies a response. Only recognisable Tributary responses count: a captive portal returns 200 for everything, and
 * trusting it would lose events.
 */
function classify(answer: HttpAnswer, text: string): Outcome {
  const { status } = answer;
  if (status === 204) return { kind: "done", data: null, etag: null };
  if (status === 304) return { kind: "same" };
  const body = parsed(text);
  if (status >= 200 && status < 300) {
    return body && body.data ? { kind: "done", data: body.data, etag: answer.headers.get("ETag") } : later(false);
  }
  const code = body?.error?.code;
  if (status >= 500 || status === 429 || status === 408) return later(true, retryAfter(answer));
  if (typeof code !== "string") return later(false);
  if (code === "sdk_disabled") return { kind: "disabled" };
  return status === 401 ? { kind: "locked" } : { kind: "refused", code, status };
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
