import type { Http, Outcome } from "./http.js";
import { kindOf, type Entry, type Queue } from "./queue.js";
import type { Clock, Lock, Problem } from "./types.js";

/** The first pause after a failure; each further one is twice as long, up to the longest. */
const PAUSE_MS = 1_000;
const PAUSE_MAX_MS = 300_000;
/** Refusals in a row after which it is not the entries that are wrong, and the pause then. */
const REFUSALS_MAX = 10;
const REFUSALS_PAUSE_MS = 3_600_000;
/** When to look again while another tab is sending. */
const BUSY_MS = 2_000;

/** How a round ended. */
export type Verdict = { kind: "empty" } | { kind: "later"; afterMs: number; busy?: boolean } | { kind: "halt" };

/** What the sender needs of the rest. */
export interface Parts {
  queue: Queue;
  http: Http;
  lock: Lock;
  clock: Clock;
  random: () => number;
  /** The id that is stored: another tab may have made it. */
  deviceId(): Promise<string>;
  /** Registers the device where that is due. Nothing: the queue may go. */
  enrol(): Promise<Verdict | undefined>;
  /** What follows when the queue is empty. */
  after(): Promise<Verdict>;
  /** Stops everything; gives the verdict that ends the round. */
  disable(): Promise<Verdict>;
  onProblem(problem: Problem): void;
}

/** Takes the queue to the server: one request at a time, in order, until it is empty. */
export class Sender {
  private timer: unknown;
  private running: Promise<boolean> | undefined;
  private again = false;
  private halted = false;
  private failures = 0;
  /** Smaller after a batch that was refused as a whole: the culprit is to be found. */
  private batchMax = Infinity;
  private refusals = 0;

  constructor(private readonly parts: Parts) {}

  /** Sends soon, together with what comes until then. A pause after a failure is not cut short. */
  soon(delayMs: number): void {
    if (this.halted || this.timer !== undefined) return;
    this.timer = this.parts.clock.setTimeout(() => {
      this.timer = undefined;
      void this.flush();
    }, delayMs);
  }

  /** Sends now. True: nothing is left. */
  flush(): Promise<boolean> {
    if (this.halted) return Promise.resolve(false);
    this.cancel();
    if (this.running) {
      this.again = true;
      return this.running;
    }
    return (this.running = this.run());
  }

  /** Sends nothing more; gives a promise for the end of what is under way. */
  async stop(): Promise<void> {
    this.halted = true;
    this.cancel();
    await this.running;
  }

  private cancel(): void {
    this.parts.clock.clearTimeout(this.timer);
    this.timer = undefined;
  }

  private async run(): Promise<boolean> {
    let verdict: Verdict;
    do {
      this.again = false;
      verdict = await this.lockedRound();
    } while (this.again && verdict.kind === "empty" && !this.halted);
    // Here and not when the promise is done: whoever calls in between must begin anew.
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

  /** Doubles from failure to failure. Spread out, so that a million phones do not come back in the same second. */
  private pause(): number {
    const full = Math.min(PAUSE_MS * 2 ** this.failures++, PAUSE_MAX_MS);
    return full * (0.5 + this.parts.random() / 2);
  }

  private async lockedRound(): Promise<Verdict> {
    let verdict: Verdict = { kind: "later", afterMs: 0, busy: true };
    try {
      await this.parts.lock("tributary", async () => {
        verdict = await this.round();
      });
    } catch (error) {
      // A storage or lock of the app's own may fail in ways of its own. The queue must not stand still for it.
      this.parts.onProblem({ code: "storage_failed", message: String(error) });
      verdict = { kind: "later", afterMs: 0 };
    }
    return verdict;
  }

  private async round(): Promise<Verdict> {
    const { queue, enrol, after } = this.parts;
    const enrolled = await enrol();
    if (enrolled) return enrolled;
    for (;;) {
      if (this.halted) return { kind: "halt" };
      const batch = await queue.head(this.batchMax);
      if (batch.length === 0) return after();
      const outcome = await this.send(batch);
      const verdict = await this.settle(batch, outcome);
      if (verdict) return verdict;
    }
  }

  private async send(batch: Entry[]): Promise<Outcome> {
    const { http } = this.parts;
    const deviceId = await this.parts.deviceId();
    if (kindOf(batch[0]!.key) === "i") {
      return http.post("identify", `{"deviceId":${JSON.stringify(deviceId)},${batch[0]!.json.slice(1)}`);
    }
    return http.post("events", eventsBody(deviceId, batch));
  }

  /** Takes off the queue what is settled. Nothing: the next batch may go. */
  private async settle(batch: Entry[], outcome: Outcome): Promise<Verdict | undefined> {
    const { queue, onProblem } = this.parts;
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
        onProblem({ code: "request_refused", message: `The server refused an entry of the queue: ${outcome.code}.` });
        await queue.remove([batch[0]!.key]);
        if (++this.refusals < REFUSALS_MAX) return undefined;
        this.refusals = 0;
        return { kind: "later", afterMs: REFUSALS_PAUSE_MS };
      case "disabled":
        return this.parts.disable();
      case "locked":
        return lockedOut(onProblem);
      case "later":
        return outcome;
      case "same":
        return { kind: "later", afterMs: 0 };
    }
  }

  /** Whether there is a word on every event. Those that were rejected will never be right, and are told. */
  private isComplete(batch: Entry[], data: unknown): boolean {
    if (!Array.isArray(data) || data.length !== batch.length) return false;
    for (const { status, eventId, error } of data as Word[]) {
      if (status !== "rejected") continue;
      const why = (error?.details ?? []).map(({ field, message }) => `${field}: ${message}`).join(" ");
      this.parts.onProblem({ code: "event_rejected", message: why, ...(eventId && { eventId }) });
    }
    return true;
  }
}

/** What the server says about one event. */
interface Word {
  status: string;
  eventId?: string | null;
  error?: { details?: { field: string; message: string }[] };
}

export const eventsBody = (deviceId: string, batch: Entry[]): string =>
  `{"deviceId":${JSON.stringify(deviceId)},"events":[${batch.map(({ json }) => json).join(",")}]}`;

/** A wrong key: nothing is lost, and nothing is tried again before the next start. */
export function lockedOut(onProblem: (problem: Problem) => void): Verdict {
  const message = "The server does not know this SDK key. Events stay queued; nothing is sent before the next start.";
  onProblem({ code: "invalid_api_key", message });
  return { kind: "halt" };
}
