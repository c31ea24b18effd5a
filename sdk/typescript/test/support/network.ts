import type { Fetch, HttpAnswer, HttpRequest } from "../../src/types";

/** What the network does with a request. */
export type Mood =
  /** It is passed on, and so is the answer. */
  | "fine"
  /** Nothing leaves the device. */
  | "offline"
  /** It arrives; the answer does not. */
  | "lost"
  /** Somebody in between answers with a page of its own. */
  | "portal"
  /** The server is overloaded. */
  | "busy";

const answer = (status: number, text: string, headers: Record<string, string> = {}): HttpAnswer => ({
  status,
  headers: { get: (name) => headers[name] ?? null },
  text: () => Promise.resolve(text),
});

/** A request that was made. */
export interface Asked {
  door: string;
  body: { deviceId?: string; events?: { eventId: string; name: string }[] } & Record<string, unknown>;
}

/** The way to the server, with moods. */
export class Network {
  mood: Mood = "fine";
  /** What the next requests meet, before the mood. */
  script: Mood[] = [];
  readonly asked: Asked[] = [];
  private readonly pending = new Set<Promise<unknown>>();
  /** Answers instead of the server. */
  play: ((asked: Asked) => HttpAnswer | undefined) | undefined;

  readonly fetch: Fetch = async (url: string, request: HttpRequest) => {
    const door = new URL(url).pathname.replace("/api/track/", "");
    const asked: Asked = { door, body: JSON.parse(request.body ?? "{}") as Asked["body"] };
    this.asked.push(asked);
    const mood = this.script.shift() ?? this.mood;
    if (mood === "offline") throw new TypeError("Failed to fetch");
    if (mood === "portal") return answer(200, "<html>Please sign in to this hotel's Wi-Fi.</html>");
    if (mood === "busy") return answer(503, '{"error":{"code":"unavailable"}}', { "Retry-After": "3" });
    const played = this.play?.(asked);
    const real = played ?? (await this.passOn(url, request));
    if (mood === "lost") throw new TypeError("connection reset");
    return real;
  };

  /** Waits for the real answers that are under way. */
  readonly idle = async (): Promise<void> => {
    while (this.pending.size > 0) await Promise.allSettled([...this.pending]);
  };

  private async passOn(url: string, request: HttpRequest): Promise<HttpAnswer> {
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

  /** The names of the events in each request that carried some. */
  get batches(): string[][] {
    return this.asked.flatMap(({ body }) => (body.events ? [body.events.map(({ name }) => name)] : []));
  }

  count(door: string): number {
    return this.asked.filter((asked) => asked.door === door).length;
  }
}

/** A server that says yes to everything, for tests that are not about it. */
export function agreeable({ door, body }: Asked): HttpAnswer {
  if (door === "identify") return answer(204, "");
  if (door === "events") {
    return answer(202, JSON.stringify({ data: body.events!.map(({ eventId }) => ({ eventId, status: "accepted" })) }));
  }
  if (door === "skan") return answer(304, "");
  const attribution = { id: "att_1", network: "organic" };
  return answer(
    200,
    JSON.stringify({ data: { sdkEnabled: true, firstOpen: true, attribution, opened: null, skan: null } }),
  );
}

export { answer };
