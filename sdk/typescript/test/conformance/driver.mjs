// The TypeScript SDK's driver for the conformance suite (sdk/conformance). It drives the built package.

import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { leaseLock, native, Tributary } from "../../dist/index.js";

/** Longest timer that runs in real time: a lock's. Everything else waits for `advance`. */
const REAL_MS = 100;
/** Turns of the event loop after which nothing more is expected to happen by itself. */
const QUIET_TURNS = 5;

/** Storage with one file per record. Files are renamed into place, so a killed process leaves no partial record. */
function fileStorage(folder) {
  mkdirSync(folder, { recursive: true });
  // Event ids may be longer than a file name. Such a record is named by a hash, and its key is in the first line.
  const nameOf = (key) => {
    const name = encodeURIComponent(key);
    return name.length < 200 ? name : `#${createHash("sha256").update(key).digest("hex")}`;
  };
  const read = (name) => {
    try {
      return readFileSync(join(folder, name), "utf8");
    } catch {
      // Another process has removed it.
      return null;
    }
  };
  const isHashed = (name) => name.startsWith("#");
  return {
    get: (key) => {
      const text = read(nameOf(key));
      return text !== null && isHashed(nameOf(key)) ? text.slice(text.indexOf("\n") + 1) : text;
    },
    set: (key, value) => {
      const name = nameOf(key);
      const partial = join(folder, `~${process.pid}`);
      writeFileSync(partial, isHashed(name) ? `${encodeURIComponent(key)}\n${value}` : value, { flush: true });
      renameSync(partial, join(folder, name));
    },
    remove: (key) => rmSync(join(folder, nameOf(key)), { force: true }),
    keys: () =>
      readdirSync(folder)
        .filter((name) => !name.startsWith("~"))
        .map((name) => (isHashed(name) ? (read(name) ?? "").split("\n")[0] : name))
        .map(decodeURIComponent),
  };
}

/** A clock that stands still until `advance`. Timers depend on the elapsed time; the wall clock is separate. */
class ManualClock {
  wall = Date.now();
  elapsed = 0;
  timers = new Map();
  real = new Set();
  nextId = 1;

  now = () => this.wall + this.elapsed;

  setTimeout = (run, ms) => {
    if (ms > REAL_MS) {
      this.timers.set(this.nextId, { at: this.elapsed + ms, run });
      return this.nextId++;
    }
    const timer = setTimeout(() => {
      this.real.delete(timer);
      run();
    }, ms);
    this.real.add(timer);
    return timer;
  };

  clearTimeout = (timer) => {
    this.timers.delete(timer);
    if (this.real.delete(timer)) clearTimeout(timer);
  };

  set(ms) {
    this.wall = ms - this.elapsed;
  }

  async advance(ms) {
    const end = this.elapsed + ms;
    for (;;) {
      await settle();
      const [due] = [...this.timers].filter(([, { at }]) => at <= end).sort(([, a], [, b]) => a.at - b.at);
      if (!due) break;
      this.timers.delete(due[0]);
      this.elapsed = Math.max(this.elapsed, due[1].at);
      due[1].run();
    }
    this.elapsed = end;
    await settle();
  }
}

const storage = fileStorage(process.env.TRIBUTARY_STORAGE);
const clock = new ManualClock();
const sdk = new Tributary();
const problems = [];
let requests = 0;
let isConfigured = false;

/** Waits until no request is in progress and none is about to start. */
async function settle() {
  for (let quiet = 0; quiet < QUIET_TURNS; quiet++) {
    await new Promise((done) => setImmediate(done));
    while (requests > 0 || clock.real.size > 0) {
      quiet = 0;
      await new Promise((done) => setTimeout(done, 1));
    }
  }
}

/** Counts the requests in progress, including their responses. */
async function countedFetch(url, request) {
  requests++;
  try {
    const answer = await fetch(url, request);
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, text: async () => text };
  } finally {
    requests--;
  }
}

/** Waits until a call is stored. Before `configure`, calls are buffered and their promises do not settle. */
const stored = (call) => (isConfigured ? call : undefined);

const COMMANDS = {
  async configure({ key, baseUrl, options = {} }) {
    const { platform = "android", openedUrl, now, consent, queueLimit } = options;
    if (now !== undefined) clock.set(now);
    await sdk.configure({
      key,
      baseUrl,
      device: { platform },
      // Tabs share a storage. A native app is a single process.
      storage: { ...storage, shared: platform === "web" },
      ...(platform === "web" && { lock: leaseLock(storage, clock) }),
      clock,
      native,
      fetch: countedFetch,
      logLevel: "none",
      onProblem: ({ code }) => problems.push(code),
      ...(consent && { consent }),
      ...(queueLimit && { queueLimit }),
      ...(openedUrl && { providers: { openedUrl: () => openedUrl } }),
    });
    isConfigured = true;
  },
  async track({ name, params, eventId }) {
    return { eventId: (await stored(sdk.trackEvent(name, params, { eventId }))) ?? null };
  },
  setConsent: ({ consent }) => stored(sdk.setConsent(consent)),
  setUserId: ({ userId, signature }) => stored(sdk.setUserId(userId, signature)),
  setMatching: ({ email, phone }) => stored(sdk.setAdvancedMatching(email, phone)),
  setGlobalParams: ({ params }) => stored(sdk.setGlobalParams(params)),
  optOut: () => stored(sdk.optOut()),
  optIn: () => stored(sdk.optIn()),
  reset: () => stored(sdk.reset()),
  async eraseMe() {
    // Its promise waits for the server.
    void sdk.eraseMe();
    await new Promise((done) => setImmediate(done));
  },
  flush: async () => void (await sdk.flush()),
  settle,
  advance: ({ ms }) => clock.advance(ms),
  setClock: ({ ms }) => clock.set(ms),
  async state() {
    const queued = storage.keys().filter((key) => /^tributary\.q\.\d+\.[er]\./.test(key)).length;
    return { deviceId: await sdk.getDeviceId(), attribution: await sdk.getAttribution(0), queued, problems };
  },
  exit: () => setImmediate(() => process.exit(0)),
};

for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    const command = JSON.parse(line);
    const result = await COMMANDS[command.do](command);
    answer = { ok: true, ...(command.do === "track" || command.do === "state" ? result : undefined) };
  } catch (error) {
    answer = { ok: false, error: String(error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
process.exit(0);
