import { leaseLock } from "../../src/lock";
import { native } from "../../src/native";
import { Tributary } from "../../src/advanced";
import { memoryStorage } from "../../src/storage";
import type { Options, Problem, Storage } from "../../src/types";
import { FakeClock } from "./clock";
import { acceptAll, Network } from "./network";

/** An SDK with a fake clock, network and storage, and a server that accepts everything. */
export class Bench {
  readonly problems: Problem[] = [];
  readonly clock: FakeClock;
  readonly network = new Network();
  readonly storage: Storage;
  sdk = new Tributary();

  constructor(private readonly options: Partial<Options> = {}) {
    this.clock = (options.clock as FakeClock | undefined) ?? new FakeClock();
    this.storage = options.storage ?? memoryStorage();
    this.network.respond = acceptAll;
  }

  configure(more: Partial<Options> = {}): Promise<void> {
    return this.sdk.configure({
      key: "pk_live_test",
      baseUrl: "http://127.0.0.1:9",
      device: { platform: "android" },
      random: () => 1,
      native,
      clock: this.clock,
      storage: this.storage,
      ...(this.storage.shared && { lock: leaseLock(this.storage, this.clock) }),
      fetch: this.network.fetch,
      onProblem: (problem) => this.problems.push(problem),
      logLevel: "none",
      ...this.options,
      ...more,
    });
  }

  /** Restarts the app. */
  async restart(more: Partial<Options> = {}): Promise<void> {
    await this.sdk.shutdown();
    this.sdk = new Tributary();
    await this.configure(more);
  }

  /** Returns the storage keys with this prefix. */
  stored(start: string): string[] {
    return (this.storage.keys() as string[]).filter((key) => key.startsWith(`tributary.${start}`));
  }

  get codes(): string[] {
    return this.problems.map(({ code }) => code);
  }
}
