import { systemClock } from "./clock.js";
import { Conversions } from "./conversions.js";
import { browserDevice } from "./device.js";
import { Enrolment } from "./enrolment.js";
import { eventJson, readEvent, type TrackCall } from "./event.js";
import { Http, KEEPALIVE_BYTES } from "./http.js";
import { browserLock, leaseLock, noLock } from "./lock.js";
import { matching, type Matching } from "./matching.js";
import { kindOf, Queue, type Entry } from "./queue.js";
import { eventsBody, Sender, type Verdict } from "./sender.js";
import { sha256, utf8 } from "./sha256.js";
import { defaultStorage } from "./storage.js";
import type { Attribution, Clock, Consent, Lock, Maybe, Options, Problem } from "./types.js";
import { uuid } from "./uuid.js";
import { then, Vault } from "./vault.js";
import { VERSION } from "./version.js";

const QUEUE_LIMIT = 1_000;
const FLUSH_DELAY_MS = 1_000;
/** Largest backward step of the clock that counts as a correction. */
const CORRECTION_MS = 1_000;

/** The identity last sent to the server. The user id is stored as a hash, for comparison only. */
interface Person {
  user?: string;
  matching?: Matching;
}

/** The SDK from `configure` to `shutdown`. */
export class Session {
  private readonly options: Options;
  private readonly clock: Clock;
  private readonly vault: Vault;
  private readonly queue: Queue;
  private readonly http: Http;
  private readonly enrolment: Enrolment;
  private readonly conversions: Conversions | undefined;
  private readonly sender: Sender;
  private deviceId = "";
  private person: Person = {};
  private lastStamp = 0;
  /** Last queue key that was sent with a beacon. */
  private beaconed = "";
  private endLifecycle: (() => void) | undefined;

  constructor(configured: Options) {
    const device = configured.device ?? browserDevice();
    if (!configured.key || !configured.baseUrl) throw new Error("Tributary: configure needs key and baseUrl.");
    if (!device?.platform) throw new Error("Tributary: outside of a browser, configure needs device.platform.");
    const options = (this.options = guarded(configured));
    const clock = (this.clock = options.clock ?? systemClock);
    const problem = (found: Problem): void => options.onProblem?.(found);
    const failed = (error: unknown): void => problem({ code: "storage_failed", message: String(error) });
    const vault = (this.vault = new Vault(options.storage ?? defaultStorage(), failed));
    const dropped = (count: number): void =>
      problem({ code: "queue_full", message: `Queue full: dropped the ${count} oldest events.` });
    const queue = (this.queue = new Queue(vault, clock, options.queueLimit ?? QUEUE_LIMIT, dropped));
    const send = options.fetch ?? ((url, request) => fetch(url, request as RequestInit));
    const http = (this.http = new Http(options.baseUrl, options.key, VERSION, send, clock));
    const isEnabled = (): boolean => this.enrolment.isEnabled;
    this.conversions = options.onConversionValue && new Conversions(vault, http, clock, options, isEnabled);
    const deviceId = (): Promise<string> => this.storedDeviceId();
    const enrolment = (this.enrolment = new Enrolment({
      vault,
      http,
      clock,
      device,
      options,
      deviceId,
      onDocument: (document) => this.conversions?.storeDocument(document, null),
      onDisabled: () => this.clearStored(),
    }));
    this.sender = new Sender({
      queue,
      http,
      clock,
      deviceId,
      lock: options.lock ?? this.defaultLock(),
      random: options.random ?? Math.random,
      enrol: () => enrolment.enrol(),
      after: () => this.afterQueue(),
      disable: () => enrolment.disable(),
      onProblem: problem,
    });
  }

  /** Loads the stored state. Synchronous with a synchronous storage. */
  load(): Maybe<void> {
    const { vault } = this;
    return then(vault.get("device"), (stored) => {
      this.deviceId = this.options.deviceId ?? stored ?? uuid();
      // If reading failed, do not overwrite the stored id: the SDK reads it again before it sends anything.
      const isKept = stored === this.deviceId || vault.hasFailed;
      return then(isKept ? undefined : vault.set("device", this.deviceId), () =>
        then(vault.read<Person>("person"), (person) => {
          this.person = { ...person };
          return then(this.enrolment.load(), () =>
            then(this.queue.load(), (keys) => this.conversions?.load(keys, this.enrolment.launch.firstAt)),
          );
        }),
      );
    });
  }

  /** Starts sending. */
  start(): void {
    const { userId, userIdSignature, lifecycle } = this.options;
    if (userId !== undefined) void this.setUserId(userId, userIdSignature);
    this.endLifecycle = lifecycle?.((isActive) => (isActive ? void this.sender.flush() : this.leave()));
    void this.sender.flush();
  }

  /** Stores an event. Returns its id, or null if it was not recorded. */
  track(call: TrackCall): Maybe<string | null> {
    if (!this.enrolment.isEnabled) return null;
    const event = readEvent(call, this.stamp(call.at), (problem) => this.options.onProblem?.(problem));
    if (!event) return null;
    const kind = event.revenue === undefined ? "e" : "r";
    return then(this.queue.add(kind, event.eventId, eventJson(event)), (key) => {
      this.sender.soon(this.options.flushDelayMs ?? FLUSH_DELAY_MS);
      return then(this.conversions?.count(key, event), () => event.eventId);
    });
  }

  setUserId(userId: string | null, userIdSignature?: string): Maybe<void> {
    // A new signature is sent even if the user id is known.
    const user = userId ? sha256(userIdSignature ? `${userId}\n${userIdSignature}` : userId) : undefined;
    if (!this.enrolment.isEnabled || user === this.person.user) return;
    const { user: _before, ...rest } = this.person;
    return this.identify(user ? { ...rest, user } : rest, userId ? { userId, userIdSignature } : null);
  }

  setAdvancedMatching(email?: string | null, phone?: string | null): Maybe<void> {
    if (!this.enrolment.isEnabled) return;
    const hashes = matching(email, phone);
    if ((email && !hashes.email) || (phone && !hashes.phone)) {
      const message = "Invalid email address or phone number; it was left out.";
      this.options.onProblem?.({ code: "invalid_matching", message });
    }
    const known = this.person.matching;
    const names = Object.keys(hashes) as (keyof Matching)[];
    if (names.every((name) => known?.[name] === hashes[name])) return;
    return this.identify({ ...this.person, matching: { ...known, ...hashes } }, { matching: hashes });
  }

  setConsent(consent: Consent): Maybe<void> {
    return then(this.enrolment.setConsent(consent), () => this.sender.soon(0));
  }

  openUrl(url: string): Maybe<void> {
    return then(this.enrolment.openUrl(url), () => this.sender.soon(0));
  }

  getAttribution(timeoutMs: number): Promise<Attribution | null> {
    return this.enrolment.attribution(timeoutMs);
  }

  /** Returns the stored device id. If two tabs started at the same time, one has overwritten the other's id. */
  async storedDeviceId(): Promise<string> {
    this.deviceId = this.options.deviceId ?? (await this.vault.get("device")) ?? this.deviceId;
    return this.deviceId;
  }

  flush(): Promise<boolean> {
    return this.sender.flush();
  }

  async shutdown(): Promise<void> {
    this.endLifecycle?.();
    await this.sender.stop();
    this.enrolment.resolveWaiters(null);
  }

  /** Returns the lock that lets only one tab send. A storage that is not shared needs no lock. */
  private defaultLock(): Lock {
    if (!this.vault.shared) return noLock;
    return browserLock() ?? leaseLock(this.vault, this.clock, uuid());
  }

  /**
   * Sends unsent events with a beacon when the page goes away. The response is unknown, so they stay queued and may be
   * sent twice; event ids make that harmless.
   */
  private leave(): void {
    const beacon = typeof navigator === "undefined" ? undefined : navigator.sendBeacon?.bind(navigator);
    if (!beacon) return void this.sender.flush();
    if (!this.enrolment.isEnabled) return;
    let bytes = 100;
    const batch: Entry[] = [];
    for (const entry of this.queue.ownSince(this.beaconed)) {
      if (kindOf(entry.key) === "i") continue;
      bytes += utf8(entry.json).length + 1;
      if (bytes > KEEPALIVE_BYTES || batch.length === 100) break;
      batch.push(entry);
    }
    const last = batch[batch.length - 1];
    // Register the device first: events from an unknown device are not attributed.
    if (last && !this.enrolment.isUpToDate) {
      beacon(this.http.beaconUrl("configure"), this.enrolment.body(this.deviceId));
    }
    if (last && beacon(this.http.beaconUrl("events"), eventsBody(this.deviceId, batch))) this.beaconed = last.key;
  }

  /** Stores the identity and queues the change, ahead of the events that follow. */
  private identify(person: Person, change: object | null): Maybe<void> {
    this.person = person;
    return then(this.vault.write("person", person), () =>
      change ? then(this.queue.add("i", uuid(), JSON.stringify(change)), () => this.sender.soon(0)) : undefined,
    );
  }

  /**
   * Returns the time of an event. Events in the same millisecond, or after a small correction of the clock, get
   * increasing times, because the server's event log is sorted by time. Larger clock changes affect event times.
   */
  private stamp(at: number): number {
    const now = Math.max(0, Math.floor(at));
    const isCorrection = now <= this.lastStamp && this.lastStamp - now < CORRECTION_MS;
    this.lastStamp = isCorrection ? this.lastStamp + 1 : now;
    return this.lastStamp;
  }

  /** Runs after the queue is empty: refreshes the conversion-value configuration. */
  private async afterQueue(): Promise<Verdict> {
    await this.conversions?.refresh(await this.storedDeviceId());
    return this.enrolment.isUpToDate ? { kind: "empty" } : { kind: "later", afterMs: 0 };
  }

  /** Clears the queue and the stored identity, so that the identity is sent again if the SDK is enabled later. */
  private clearStored(): Maybe<void> {
    this.person = {};
    return then(this.vault.remove("person"), () => this.queue.clear());
  }
}

/** Wraps the app's callbacks so that their exceptions do not reach the SDK. */
function guarded(options: Options): Options {
  const guard = <T>(callback: ((value: T) => void) | undefined) =>
    callback &&
    ((value: T): void => {
      try {
        callback(value);
      } catch (error) {
        if (typeof console !== "undefined") console.error("Tributary: an app callback threw an error.", error);
      }
    });
  const { onAttribution, onOpenedLink, onProblem } = options;
  return {
    ...options,
    ...(onAttribution && { onAttribution: guard(onAttribution)! }),
    ...(onOpenedLink && { onOpenedLink: guard(onOpenedLink)! }),
    ...(onProblem && { onProblem: guard(onProblem)! }),
  };
}
