import type { Clock } from "../../src/types";

interface Timer {
  at: number;
  run: () => void;
}

/** A clock that stands still until it is moved. Timers go by the time that passes; the wall clock can be set beside. */
export class FakeClock implements Clock {
  private passed = 0;
  private timers = new Map<number, Timer>();
  private next = 1;

  /** `idle` waits for what takes real time: while it is under way, this clock stands still. */
  constructor(
    private wall = Date.now(),
    private readonly idle: () => Promise<void> = async () => undefined,
  ) {}

  now(): number {
    return this.wall + this.passed;
  }

  setTimeout(run: () => void, ms: number): unknown {
    this.timers.set(this.next, { at: this.passed + ms, run });
    return this.next++;
  }

  clearTimeout(handle: unknown): void {
    this.timers.delete(handle as number);
  }

  /** Puts the wall clock forward or back, as a person does in the settings. */
  set(byMs: number): void {
    this.wall += byMs;
  }

  /** Lets time pass, timer by timer, and lets what they start come to rest. */
  async pass(ms: number): Promise<void> {
    const end = this.passed + ms;
    for (;;) {
      await this.settle();
      const due = [...this.timers].filter(([, { at }]) => at <= end).sort(([, a], [, b]) => a.at - b.at)[0];
      if (!due) break;
      this.timers.delete(due[0]);
      this.passed = Math.max(this.passed, due[1].at);
      due[1].run();
    }
    this.passed = end;
    await this.settle();
  }

  /** Lets everything run that waits for nothing but its turn, or for an answer. */
  private async settle(): Promise<void> {
    for (let turn = 0; turn < 20; turn++) {
      await new Promise((done) => setImmediate(done));
      await this.idle();
    }
  }
}
