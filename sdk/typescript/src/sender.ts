import type { Http, Outcome } from "./http.js";
import { kindOf, type Entry, type Queue } from "./queue.js";
import type { Clock, Lock, Maybe, Problem } from "./types.js";

/** Exponential back-off: first and maximum delay. */
const PAUSE_MS = 1_000;
const PAUSE_MAX_MS = 300_000;
/** Number of consecutive rejections after which the SDK assumes a faulty server, and the pause that follows. */
const REFUSALS_MAX = 10;
const REFUSALS_PAUSE_MS = 3_600_000;
/** Retry delay while another tab is sending. */
const BUSY_MS = 2_000;

/** Result of a sending round. */
export type Verdict = { kind: "empty" } | { kind: "later"; afterMs: number; busy?: boolean } | { kind: "halt" };

/** Dependencies of the sender. */
export interface SenderDependencies {
  queue: Queue;
  http: Http;
  lock: Lock;
  clock: Clock;
  random: () => number;
  /** The stored device id, which another tab may have created. */
  deviceId(): Maybe<string>;
  /** Sends what goes ahead of the queue, such as the consent. Returns undefined if the queue may be sent. */
  prepare(isFirst: boolean): Promise<Verdict | undefined>;
  /** Called each time the queue is empty. */
  after(): Promise<Verdict>;
  /** Disables the SDK and returns the verdict that ends the round. */
  disable(): Promise<Verdict>;
  onProblem(problem: Problem): void;
}

/** Sends the queue in order, one request at a time, until it is empty. */
export class Sender {
  private timer: unknown;
  private running: Promise<boolean> | undefined;
  private again = false;
  private halted = false;
  private stopped = false;
  private failures = 0;
  /** Maximum batch size. Halved after a rejected batch, to isolate the invalid entry. */
  private batchMax = Infinity;
  private refusals = 0;

  constructor(private readonly deps: SenderDependencies) {}

  /** Schedules sending after a delay, so that later events can share the request. Does not shorten a back-off. */
  soon(delayMs: number): void {
    if (this.halted || this.timer !== undefined) return;
    this.timer = this.deps.clock.setTimeout(() => {
      this.timer = undefined;
      void this.flush();
    }, delayMs);
  }

  /** Sends now. Returns true if the queue is empty afterwards. */
  flush(): Promise<boolean> {
    if (this.halted) return Promise.resolve(false);
    this.cancel();
    if (this.running) {
      this.again = true;
      return this.running;
    }
    return (this.running = this.run());
  }

  /** Sends again after a halt. */
  resume(): Promise<boolean> {
    this.halted = this.stopped;
    return this.flush();
  }

  /** Stops sending and waits for the request in flight. */
  async stop(): Promise<void> {
    this.halted = this.stopped = true;
    this.cancel();
    await this.running;
  }

  private cancel(): void {
    this.deps.clock.clearTimeout(this.timer);
    this.timer = undefined;
  }

  private async run(): Promise<boolean> {
    let verdict: Verdict;
    do {
      this.again = false;
      verdict = await this.lockedRound();
    } while (this.again && verdict.kind === "empty" && !this.halted);
    // Reset here and not when the promise settles, so that a call in between starts a new round.
    this.running = undefined;
    if (verdict.kind === "halt") {
      this.halted = true;
      this.cancel();
      return false;
    }
    if (verdict.kind === "empty") {
      this.failures = 0;
      return true;
    }
    this.cancel();
    this.soon(verdict.busy ? BUSY_MS : Math.max(verdict.afterMs, this.pause()));
    return false;
  }

  /** Returns the next delay: doubled on each failure, with jitter so that devices do not retry in sync. */
  private pause(): number {
    const full = Math.min(PAUSE_MS * 2 ** this.failures++, PAUSE_MAX_MS);
    return full * (0.5 + this.deps.random() / 2);
  }

  private async lockedRound(): Promise<Verdict> {
    let verdict: Verdict = { kind: "later", afterMs: 0, busy: true };
    try {
      await this.deps.lock("tributary", async () => {
        verdict = await this.round();
      });
    } catch (error) {
      // A custom storage or lock may fail. Sending must continue nevertheless.
      this.deps.onProblem({ code: "storage_failed", message: String(error) });
      verdict = { kind: "later", afterMs: 0 };
    }
    return verdict;
  }

  private async round(): Promise<Verdict> {
    const { queue, prepare, after } = this.deps;
    for (let isFirst = true; ; isFirst = false) {
      const ended = await prepare(isFirst);
      if (ended) return ended;
      if (this.halted) return { kind: "halt" };
      const batch = await queue.head(this.batchMax);
      if (batch.length === 0) return after();
      const outcome = await this.send(batch);
      const verdict = await this.settle(batch, outcome);
      if (verdict) return verdict;
    }
  }

  private async send(batch: Entry[]): Promise<Outcome> {
    const { http, queue } = this.deps;
    const { key, json } = batch[0]!;
    // This also reads the earlier device ids again if another tab has made a new device.
    const current = await this.deps.deviceId();
    const deviceId = queue.pastDevice(key) ?? current;
    if (kindOf(key) === "i") return http.post("identify", `{"deviceId":${JSON.stringify(deviceId)},${json.slice(1)}`);
    return http.post("events", eventsBody(deviceId, batch));
  }

  /** Removes settled entries from the queue. Returns undefined if the next batch may be sent. */
  private async settle(batch: Entry[], outcome: Outcome): Promise<Verdict | undefined> {
    const { queue, onProblem } = this.deps;
    switch (outcome.kind) {
      case "done":
        if (kindOf(batch[0]!.key) !== "i" && !this.isComplete(batch, outcome.data)) {
          return { kind: "later", afterMs: 0 };
        }
        await queue.remove(batch.map(({ key }) => key));
        this.batchMax *= 2;
        this.failures = this.refusals = 0;
        return undefined;
      case "refused":
        if (batch.length > 1) {
          this.batchMax = batch.length >> 1;
          return undefined;
        }
        onProblem({ code: "request_refused", message: `The server rejected an entry: ${outcome.code}.` });
        await queue.remove([batch[0]!.key]);
        if (++this.refusals < REFUSALS_MAX) return undefined;
        this.refusals = 0;
        return { kind: "later", afterMs: REFUSALS_PAUSE_MS };
      case "disabled":
        return this.deps.disable();
      case "locked":
        return reportInvalidKey(onProblem);
      case "later":
        return outcome;
      default:
        return { kind: "later", afterMs: 0 };
    }
  }

  /** Returns whether the response covers every event. Rejected events are reported to `onProblem`. */
  private isComplete(batch: Entry[], data: unknown): boolean {
    if (!Array.isArray(data) || data.length !== batch.length) return false;
    for (const { status, eventId, error } of data as EventResult[]) {
      if (status !== "rejected") continue;
      const why = (error?.details ?? []).map(({ field, message }) => `${field}: ${message}`).join(" ");
      this.deps.onProblem({ code: "event_rejected", message: why, ...(eventId && { eventId }) });
    }
    return true;
  }
}

/** Result of one event in the response. */
interface EventResult {
  status: string;
  eventId?: string | null;
  error?: { details?: { field: string; message: string }[] };
}

export const eventsBody = (deviceId: string, batch: Entry[]): string =>
  `{"deviceId":${JSON.stringify(deviceId)},"events":[${batch.map(({ json }) => json).join(",")}]}`;

/** Handles an invalid key: events stay queued, and nothing is sent before the next start. */
export function reportInvalidKey(onProblem: (problem: Problem) => void): Verdict {
  const message = "Unknown SDK key: copy it from the app's settings.";
  onProblem({ code: "invalid_api_key", message });
  return { kind: "halt" };
}
