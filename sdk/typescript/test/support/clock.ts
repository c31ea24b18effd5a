import type { Clock } from "../../src/types";

interface Timer {
  at: number;
  run: () => void;
}

/** A manual clock. Timers depend on the elapsed time; the wall clock can be changed separately. */
export class FakeClock implements Clock {
  private passed = 0;
  private timers = new Map<number, Timer>();
  private next = 1;

  /** `idle` waits for real I/O, during which this clock does not advance. */
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

  /** Changes the wall clock, as a user can in the device's settings. */
  set(byMs: number): void {
    this.wall += byMs;
  }

  /** Advances the time, runs due timers in order, and waits for the work they start. */
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

  /** Runs pending microtasks and I/O. */
  private async settle(): Promise<void> {
    for (let turn = 0; turn < 20; turn++) {
      await new Promise((done) => setImmediate(done));
      await this.idle();
    }
  }
}
