/** Sends requests: timeout, repetition, errors. */

import { TributaryError } from "./error.js";

/** Longest wait before a repetition, whatever the server asks for. */
const DELAY_MAX_MS = 60_000;
/** Wait before the first repetition if the server asks for none. It doubles each time. */
const DELAY_MS = 500;

interface SenderOptions {
  retries?: number;
  timeoutMs?: number;
  fetch?: typeof globalThis.fetch;
}

/** Returns a function that sends a request and throws a `TributaryError` unless it succeeds. */
export function sender(options: SenderOptions): (request: Request) => Promise<Response> {
  const { retries = 3, timeoutMs = 60_000 } = options;
  const transport = options.fetch ?? globalThis.fetch;

  const attempt = async (request: Request): Promise<Response> => {
    const timeout = new AbortController();
    const reason = new DOMException(`no answer after ${timeoutMs} ms`, "TimeoutError");
    const timer = setTimeout(() => timeout.abort(reason), timeoutMs);
    try {
      // A body can be sent once, so each attempt gets a copy.
      return await transport(request.clone(), { signal: AbortSignal.any([request.signal, timeout.signal]) });
    } finally {
      clearTimeout(timer);
    }
  };

  return async (request) => {
    for (let failed = 0; ; failed++) {
      const response = await attempt(request);
      if (response.ok) return response;
      const isBusy = response.status === 429 || response.status === 503;
      if (!isBusy || failed >= retries || !isRepeatable(request)) throw await TributaryError.read(response);
      await response.body?.cancel();
      await pause(delay(response, failed), request.signal);
    }
  };
}

/** Whether a request has the same effect once and twice. Events have ids, so a repeated one counts once. */
function isRepeatable(request: Request): boolean {
  return ["GET", "PUT", "DELETE"].includes(request.method) || new URL(request.url).pathname.endsWith("/web-events");
}

function delay(response: Response, failed: number): number {
  const asked = Number.parseInt(response.headers.get("Retry-After") ?? "", 10);
  const ms = Number.isNaN(asked) ? DELAY_MS * 2 ** failed : asked * 1_000;
  return Math.min(ms, DELAY_MAX_MS);
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
}
