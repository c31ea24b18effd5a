// The driver of the reference SDK: reads commands from stdin and answers on stdout (README.md).

import { createInterface } from "node:readline";
import { Sdk } from "./sdk.mjs";

/** A clock that stands still until `advance`. Timers depend on the elapsed time, not on the wall clock. */
class ManualClock {
  #wall = Date.now();
  #elapsed = 0;
  #timers = new Map();
  #next = 1;

  now() {
    return this.#wall + this.#elapsed;
  }

  set(ms) {
    this.#wall = ms - this.#elapsed;
  }

  setTimeout(run, ms) {
    this.#timers.set(this.#next, { at: this.#elapsed + ms, run });
    return this.#next++;
  }

  clearTimeout(handle) {
    this.#timers.delete(handle);
  }

  /** Advances the time, runs due timers in order, and waits for the requests that they start. */
  async advance(ms, settle) {
    const end = this.#elapsed + ms;
    for (;;) {
      await settle();
      const due = [...this.#timers].filter(([, { at }]) => at <= end).sort(([, a], [, b]) => a.at - b.at)[0];
      if (!due) break;
      this.#timers.delete(due[0]);
      this.#elapsed = Math.max(this.#elapsed, due[1].at);
      due[1].run();
    }
    this.#elapsed = end;
  }
}

const clock = new ManualClock();
const sdk = new Sdk(clock, process.env.TRIBUTARY_STORAGE);

const COMMANDS = {
  configure: ({ key, baseUrl, options: { now, ...options } }) => {
    if (now !== undefined) clock.set(now);
    sdk.configure({ key, baseUrl, ...options });
  },
  setConsent: ({ consent }) => sdk.setConsent(consent),
  track: ({ name, params, eventId }) => ({ eventId: sdk.track(name, params, eventId) }),
  setUserId: ({ userId, signature }) => sdk.setUserId(userId, signature),
  setMatching: ({ email, phone }) => sdk.setMatching(email, phone),
  setGlobalParams: ({ params }) => sdk.setGlobalParams(params),
  flush: async () => {
    await sdk.flush();
  },
  settle: () => sdk.settle(),
  advance: ({ ms }) => clock.advance(ms, () => sdk.settle()),
  setClock: ({ ms }) => clock.set(ms),
  optOut: () => sdk.optOut(),
  optIn: () => sdk.optIn(),
  reset: () => sdk.reset(),
  eraseMe: () => sdk.eraseMe(),
  state: () => sdk.state(),
  exit: () => setImmediate(() => process.exit(0)) && undefined,
};

for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    const command = JSON.parse(line);
    answer = { ok: true, ...(await COMMANDS[command.do](command)) };
  } catch (error) {
    answer = { ok: false, error: error.stack };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
