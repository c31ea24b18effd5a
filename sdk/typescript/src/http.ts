import { utf8 } from "./sha256.js";
import type { Clock, Fetch, HttpAnswer, HttpRequest } from "./types.js";

/** How long an answer is waited for. Phones on bad networks are slow, and a request that hangs holds up the queue. */
const TIMEOUT_MS = 20_000;
/** Browsers let requests outlive their page up to 64 KiB together, beacons included. */
export const KEEPALIVE_BYTES = 30_000;
/** A server that asks for more patience than this is asked again all the same. */
const RETRY_AFTER_MAX_MS = 3_600_000;

/** What became of a request. */
export type Outcome =
  /** It was taken. */
  | { kind: "done"; data: unknown; etag: string | null }
  /** The device has it already. */
  | { kind: "same" }
  /** No answer, or one that says "later". Whether it arrived is unknown, so it is sent again as it was. */
  | { kind: "later"; answered: boolean; afterMs: number }
  /** It will never be right. */
  | { kind: "refused"; code: string; status: number }
  /** The key is wrong. */
  | { kind: "locked" }
  /** The app told its SDKs to stop. */
  | { kind: "disabled" };

const later = (answered: boolean, afterMs = 0): Outcome => ({ kind: "later", answered, afterMs });

/** The doors of the server. */
export class Http {
  constructor(
    private readonly baseUrl: string,
    private readonly key: string,
    private readonly version: string,
    private readonly fetch: Fetch,
    private readonly clock: Clock,
  ) {}

  /** The URL of a door for a beacon, which can send no header. */
  beaconUrl(door: string): string {
    return `${this.url(door)}?key=${encodeURIComponent(this.key)}`;
  }

  post(door: string, body: string): Promise<Outcome> {
    const headers = { "Content-Type": "application/json" };
    return this.ask(this.url(door), { method: "POST", headers, body, keepalive: utf8(body).length < KEEPALIVE_BYTES });
  }

  get(door: string, query: string, etag: string | null): Promise<Outcome> {
    const headers: Record<string, string> = etag ? { "If-None-Match": etag } : {};
    return this.ask(`${this.url(door)}?${query}`, { method: "GET", headers });
  }

  private url(door: string): string {
    return `${this.baseUrl.replace(/\/+$/, "")}/api/track/${door}`;
  }

  private async ask(url: string, request: HttpRequest): Promise<Outcome> {
    const abort = typeof AbortController === "undefined" ? undefined : new AbortController();
    let timer: unknown;
    const timeout = new Promise<never>((_, reject) => {
      timer = this.clock.setTimeout(() => {
        abort?.abort();
        reject(new Error("timeout"));
      }, TIMEOUT_MS);
    });
    const headers = { ...request.headers, "X-Tributary-Key": this.key, "X-SDK-Version": this.version };
    const asked = async (): Promise<Outcome> => {
      const answer = await this.fetch(url, { ...request, headers, ...(abort && { signal: abort.signal }) });
      return judge(answer, await answer.text());
    };
    try {
      return await Promise.race([asked(), timeout]);
    } catch {
      return later(false);
    } finally {
      this.clock.clearTimeout(timer);
    }
  }
}

/**
 * Judges an answer. Only what is recognisably Tributary's counts: the page of a hotel's Wi-Fi says 200 to everything,
 * and believing it would lose events.
 */
function judge(answer: HttpAnswer, text: string): Outcome {
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
    // Not ours.
    return null;
  }
}

function retryAfter(answer: HttpAnswer): number {
  const seconds = Number(answer.headers.get("Retry-After"));
  return seconds > 0 ? Math.min(seconds * 1000, RETRY_AFTER_MAX_MS) : 0;
}
