import type { Fetch, HttpAnswer, HttpRequest } from "../../src/types";

/** What the network does with a request. */
export type NetworkMode =
  /** Requests and responses get through. */
  | "fine"
  /** Requests fail. */
  | "offline"
  /** The request arrives, the response is lost. */
  | "lost"
  /** A captive portal responds. */
  | "portal"
  /** The server returns 503 with Retry-After. */
  | "busy";

const answer = (status: number, text: string, headers: Record<string, string> = {}): HttpAnswer => ({
  status,
  headers: { get: (name) => headers[name] ?? null },
  text: () => Promise.resolve(text),
});

/** A recorded request. */
export interface RecordedRequest {
  endpoint: string;
  body: { deviceId?: string; events?: { eventId: string; name: string }[] } & Record<string, unknown>;
}

/** A fake network between SDK and server. */
export class Network {
  mode: NetworkMode = "fine";
  /** Modes of the next requests, before `mode` applies. */
  script: NetworkMode[] = [];
  readonly requests: RecordedRequest[] = [];
  private readonly pending = new Set<Promise<unknown>>();
  /** Responds instead of the server. */
  respond: ((recorded: RecordedRequest) => HttpAnswer | undefined) | undefined;

  readonly fetch: Fetch = async (url: string, request: HttpRequest) => {
    const endpoint = new URL(url).pathname.replace("/api/track/", "");
    const recorded: RecordedRequest = { endpoint, body: JSON.parse(request.body ?? "{}") as RecordedRequest["body"] };
    this.requests.push(recorded);
    const mode = this.script.shift() ?? this.mode;
    if (mode === "offline") throw new TypeError("Failed to fetch");
    if (mode === "portal") return answer(200, "<html>Please sign in to this hotel's Wi-Fi.</html>");
    if (mode === "busy") return answer(503, '{"error":{"code":"unavailable"}}', { "Retry-After": "3" });
    const scripted = this.respond?.(recorded);
    const real = scripted ?? (await this.forward(url, request));
    if (mode === "lost") throw new TypeError("connection reset");
    return real;
  };

  /** Waits for the requests in flight. */
  readonly idle = async (): Promise<void> => {
    while (this.pending.size > 0) await Promise.allSettled([...this.pending]);
  };

  private async forward(url: string, request: HttpRequest): Promise<HttpAnswer> {
    const whole = fetch(url, request as RequestInit).then(async (real) => {
      const text = await real.text();
      return { status: real.status, headers: real.headers, text: () => Promise.resolve(text) };
    });
    this.pending.add(whole);
    try {
      return await whole;
    } finally {
      this.pending.delete(whole);
    }
  }

  /** Event names in each request that contains events. */
  get batches(): string[][] {
    return this.requests.flatMap(({ body }) => (body.events ? [body.events.map(({ name }) => name)] : []));
  }

  count(endpoint: string): number {
    return this.requests.filter((recorded) => recorded.endpoint === endpoint).length;
  }
}

/** A server that accepts everything. */
export function acceptAll({ endpoint, body }: RecordedRequest): HttpAnswer {
  if (endpoint === "identify") return answer(204, "");
  if (endpoint === "events") {
    return answer(202, JSON.stringify({ data: body.events!.map(({ eventId }) => ({ eventId, status: "accepted" })) }));
  }
  if (endpoint === "skan") return answer(304, "");
  if (endpoint === "erase") return answer(200, '{"data":{"status":"erased"}}');
  const attribution = { id: "att_1", network: "organic" };
  return answer(
    200,
    JSON.stringify({ data: { sdkEnabled: true, firstOpen: true, attribution, opened: null, skan: null } }),
  );
}

export { answer };
