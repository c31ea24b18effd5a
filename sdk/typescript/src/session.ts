import { systemClock } from "./clock.js";
import type { Conversions } from "./conversions.js";
import { browserDevice } from "./device.js";
import { diagnose } from "./diagnosis.js";
import { Enrolment } from "./enrolment.js";
import { byteLength, eventJson, readEvent, type TrackCall } from "./event.js";
import { fingerprint } from "./fingerprint.js";
import { Http, KEEPALIVE_BYTES } from "./http.js";
import { browserLock, noLock } from "./lock.js";
import type { Matching } from "./matching.js";
import { reporter } from "./notify.js";
import { watchPageViews } from "./pageviews.js";
import { consentOf, Privacy } from "./privacy.js";
import { kindOf, Queue, type Entry } from "./queue.js";
import { eventsBody, reportInvalidKey, Sender, type Verdict } from "./sender.js";
import { defaultStorage } from "./storage.js";
import type { Attribution, Clock, Consent, Maybe, Options, Params, Problem } from "./types.js";
import { uuid } from "./uuid.js";
import { all, then, Vault } from "./vault.js";

const QUEUE_LIMIT = 1_000;
const FLUSH_DELAY_MS = 1_000;
/** Largest backward step of the clock that counts as a correction. */
const CORRECTION_MS = 1_000;

/** The identity last sent to the server. The user id is stored as a hash, for comparison only. */
export interface Person {
  user?: string;
  matching?: Matching;
}

/**
 * Start of the keys of requests that go ahead of all others: `a.<sequence>.<endpoint>.<id>`. They are refusals and
 * erasures. Each is a separate record and carries its device id, so that it outlives the device's other data.
 */
export const AHEAD = "a.";

/** The SDK from `configure` to `shutdown`. */
export class Session {
  readonly clock: Clock;
  readonly vault: Vault;
  readonly privacy: Privacy;
  readonly queue: Queue;
  readonly http: Http;
  readonly enrolment: Enrolment;
  private readonly conversions: Conversions | undefined;
  readonly sender: Sender;
  readonly onProblem: (problem: Problem) => void;
  deviceId = "";
  person: Person = {};
  globalParams: Params = {};
  private isDiagnosed = false;
  private lastStamp = 0;
  /** Last queue key that was sent with a beacon. */
  private beaconed = "";
  /** The enrolment's version in this sending round. */
  private sentVersion = "";
  /** The last change of the device's identity. They run one after the other. */
  lastChange: Maybe<void> = undefined;
  /** Keys of the requests ahead of all others that the server has accepted since the start. */
  readonly confirmed: string[] = [];
  private readonly ends: ((() => void) | undefined)[] = [];

  constructor(readonly options: Options) {
    const device = options.device ?? browserDevice();
    if (!options.key || !options.baseUrl) throw new Error("Tributary: configure needs key and baseUrl.");
    if (!device?.platform) throw new Error("Tributary: configure needs device.platform.");
    const { key, baseUrl, onConversionValue } = options;
    const clock = (this.clock = options.clock ?? systemClock);
    const onProblem = (this.onProblem = reporter(options));
    const failed = (error: unknown): void => onProblem({ code: "storage_failed", message: String(error) });
    const vault = (this.vault = new Vault(options.storage ?? defaultStorage(), failed));
    const privacy = (this.privacy = new Privacy(vault));
    const dropped = (count: number): void =>
      onProblem({ code: "queue_full", message: `Queue full: dropped the ${count} oldest events.` });
    const queue = (this.queue = new Queue(vault, clock, options.queueLimit ?? QUEUE_LIMIT, dropped));
    const http = (this.http = new Http({
      key,
      baseUrl,
      clock,
      fetch: options.fetch ?? ((url, request) => fetch(url, request as RequestInit)),
      onProblem,
      onFailure: (url) => this.diagnoseOnce(url),
      log: (text) => options.logLevel === "debug" && console.debug(`Tributary: ${text}`),
    }));
    const isActive = (): boolean => this.isActive;
    this.conversions = onConversionValue && options.native?.conversionValues(vault, http, clock, options, isActive);
    if ((onConversionValue || options.providers) && !options.native) {
      onProblem({ code: "missing_native", message: "providers and onConversionValue need `native`." });
    }
    const deviceId = (): Maybe<string> => this.storedDeviceId();
    const enrolment = (this.enrolment = new Enrolment({
      vault,
      privacy,
      http,
      clock,
      device,
      options,
      deviceId,
      onProblem,
      onDocument: (document) => this.conversions?.storeDocument(document, null),
      onDisabled: () => this.clearStored(),
    }));
    this.sender = new Sender({
      queue,
      http,
      clock,
      deviceId,
      lock: options.lock ?? ((vault.shared && browserLock()) || noLock),
      random: options.random ?? Math.random,
      prepare: (isFirst) => this.prepare(isFirst),
      after: () => this.afterQueue(),
      disable: () => enrolment.disable(),
      onProblem,
    });
  }

  /** Loads the stored state. Synchronous with a synchronous storage. */
  load(): Maybe<void> {
    const { vault, privacy, queue, enrolment, conversions } = this;
    const { deviceId } = this.options;
    return then(privacy.load(), ({ stop }) => {
      // The start after an erasure is that of a new device.
      const resumed = stop === "erased" ? privacy.change(() => ({})) : undefined;
      const records = [vault.get("device"), vault.read("person"), queue.loadPast(), enrolment.read(), resumed];
      return all<unknown, void>(records, ([stored, person]) => {
        this.deviceId = deviceId ?? (stored as string | null) ?? uuid();
        this.person = { ...(person as Person | null) };
        // If reading failed, do not overwrite the stored id: the SDK reads it again before it sends anything.
        const isKept = stored === this.deviceId || (vault.hasFailed && !deviceId);
        const writes = [isKept ? undefined : vault.set("device", this.deviceId), enrolment.begin(isKept)];
        return all(writes, () => then(queue.load(), (keys) => conversions?.load(keys, enrolment.launch.firstAt)));
      });
    });
  }

  /** Starts sending. */
  start(): void {
    const { userId, userIdSignature, lifecycle, pageViews } = this.options;
    if (userId !== undefined) void this.setUserId(userId, userIdSignature);
    this.ends.push(lifecycle?.((isActive) => (isActive ? void this.sender.flush() : this.leave())));
    if (pageViews) {
      const view = (params: Params): unknown => this.track({ name: "page_view", params, at: this.clock.now() });
      this.ends.push(watchPageViews(view));
    }
    void this.sender.flush();
  }

  /** Stores an event with the consent in force. Returns its id, or null if it was not recorded. */
  track(call: TrackCall): Maybe<string | null> {
    if (!this.enrolment.isEnabled) return null;
    const event = readEvent(call, this.globalParams, this.stamp(call.at), this.onProblem);
    if (!event) return null;
    const kind = event.revenue === undefined ? "e" : "r";
    const json = then(this.privacy.current(), (record) => (record.stop ? null : eventJson(event, consentOf(record))));
    return then(this.queue.add(kind, event.eventId, json), (key) => {
      if (key === null) return null;
      this.sender.soon(this.options.flushDelayMs ?? FLUSH_DELAY_MS);
      return then(this.conversions?.count(key, event), () => event.eventId);
    });
  }

  setGlobalParams(params: Params | null): void {
    const { revenue: _revenue, currency: _currency, ...rest } = params ?? {};
    this.globalParams = rest;
  }

  setUserId(userId: string | null, userIdSignature?: string): Maybe<void> {
    // A new signature is sent even if the user id is known.
    const user = userId ? fingerprint(userIdSignature ? `${userId}\n${userIdSignature}` : userId) : undefined;
    if (!this.isActive || user === this.person.user) return;
    // The user id in `configure` would overtake the events of the earlier user.
    const { options } = this;
    if (userId !== options.userId || userIdSignature !== options.userIdSignature) this.forgetUserId();
    const { user: _before, ...rest } = this.person;
    return this.identify(user ? { ...rest, user } : rest, userId ? { userId, userIdSignature } : null);
  }

  /** Forgets what the app has set for this person, in memory. */
  forgetPerson(): void {
    this.forgetUserId();
    this.person = {};
    this.globalParams = {};
  }

  /** Removes the user id from further `configure` requests. */
  private forgetUserId(): void {
    Object.assign(this.options, { userId: undefined, userIdSignature: undefined });
  }

  setConsent(consent: Consent): Maybe<void> {
    return then(this.privacy.set(consent), () => this.sender.soon(0));
  }

  openUrl(url: string): Maybe<void> {
    if (!this.isActive) return;
    return then(this.storedDeviceId(), () => then(this.enrolment.openUrl(url), () => this.sender.soon(0)));
  }

  getAttribution(timeoutMs: number): Promise<Attribution | null> {
    return this.enrolment.attribution(timeoutMs);
  }

  get clickId(): string | null {
    return this.enrolment.clickId;
  }

  /**
   * Returns the stored device id. If it differs, another tab has made a new device, by `reset` or because both started
   * at the same time: this tab continues with that device's data.
   */
  storedDeviceId(): Maybe<string> {
    return then(this.lastChange, () =>
      then(this.vault.get("device"), (stored) => {
        if (!stored || stored === this.deviceId) return this.deviceId;
        this.deviceId = stored;
        this.person = {};
        return all<unknown, string>([this.enrolment.read(), this.queue.loadPast()], ([isReset]) => {
          if (isReset) this.forgetPerson();
          return stored;
        });
      }),
    );
  }

  flush(): Promise<boolean> {
    return this.sender.flush();
  }

  async shutdown(): Promise<void> {
    this.ends.forEach((end) => end?.());
    await this.sender.stop();
    this.enrolment.resolveWaiters(null);
  }

  /**
   * Sends unsent events with a beacon when the page goes away. The response is unknown, so they stay queued and may be
   * sent twice; event ids make that harmless.
   */
  private leave(): void {
    const beacon = typeof navigator === "undefined" ? undefined : navigator.sendBeacon?.bind(navigator);
    if (!beacon) return void this.sender.flush();
    // Another tab may have stopped the recording, deleted entries or made a new device. With `localStorage`, this is
    // known at once.
    void this.privacy.current();
    void this.storedDeviceId();
    void this.queue.keys();
    if (!this.isActive) return;
    let bytes = 100;
    const batch: Entry[] = [];
    for (const entry of this.queue.ownSince(this.beaconed)) {
      if (kindOf(entry.key) === "i") continue;
      bytes += byteLength(entry.json) + 1;
      if (bytes > KEEPALIVE_BYTES || batch.length === 100) break;
      batch.push(entry);
    }
    const last = batch[batch.length - 1];
    // Register the device first: events from an unknown device are not attributed.
    if (last && !this.enrolment.isUpToDate) {
      beacon(this.http.beaconUrl("configure"), this.enrolment.body(this.deviceId));
    }
    if (!last || this.enrolment.isHeld) return;
    if (beacon(this.http.beaconUrl("events"), eventsBody(this.deviceId, batch))) this.beaconed = last.key;
  }

  /** Whether the SDK records and sends: neither disabled by the server nor stopped by the user. */
  get isActive(): boolean {
    return this.enrolment.isEnabled && !this.privacy.record.stop;
  }

  /** Sends what goes ahead of the queue: the device data and the consent. */
  private async prepare(isFirst: boolean): Promise<Verdict | undefined> {
    if (isFirst) this.sentVersion = "";
    await this.storedDeviceId();
    const ended = await this.sendAhead();
    if (ended) return ended;
    if ((await this.privacy.current()).stop) return { kind: "empty" };
    // The earlier device's entries do not wait for the new device.
    const [first] = await this.queue.keys();
    const { version } = this.enrolment;
    if ((first && this.queue.pastDevice(first)) || version === this.sentVersion) return undefined;
    this.sentVersion = version;
    // The consent or the device may have changed during the request.
    return (await this.enrolment.enrol()) ?? this.prepare(false);
  }

  /** Sends the refusals and erasures. Returns undefined if other requests may follow. */
  private async sendAhead(): Promise<Verdict | undefined> {
    const { vault, http, onProblem } = this;
    for (const key of await vault.keys(AHEAD)) {
      const body = await vault.get(key);
      const endpoint = key.split(".")[2]!;
      const isErasure = endpoint === "erase";
      // Removed in the meantime.
      if (!body) continue;
      const outcome = await http.post(endpoint, body);
      // A server without this endpoint must not block the queue. The request stays stored.
      if (outcome.kind === "later" && outcome.foreign && isErasure) continue;
      if (outcome.kind === "later") return outcome;
      if (outcome.kind === "locked") return reportInvalidKey(onProblem);
      if (outcome.kind === "done") this.confirmed.push(key);
      else {
        const code = isErasure ? "erase_refused" : "request_refused";
        onProblem({ code, message: `The server rejected ${endpoint}.` });
      }
      await vault.remove(key);
    }
    return undefined;
  }

  /** Reports why the browser got no response, once. */
  private diagnoseOnce(url: string): void {
    if (this.isDiagnosed || this.options.fetch) return;
    this.isDiagnosed = true;
    void diagnose(url, this.options.baseUrl).then((found) => {
      if (found) this.onProblem(found);
      else this.isDiagnosed = false;
    });
  }

  /** Stores the identity and queues the change, ahead of the events that follow. */
  identify(person: Person, change: object | null): Maybe<void> {
    this.person = person;
    const json = then(this.vault.write("person", person), () => change && JSON.stringify(change));
    return then(this.queue.add("i", uuid(), json), (key) => (key ? this.sender.soon(0) : undefined));
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
    if (this.queue.past.length > 0) {
      this.queue.past = [];
      await this.vault.remove("past");
    }
    await this.conversions?.refresh(await this.storedDeviceId());
    return this.enrolment.isUpToDate ? { kind: "empty" } : { kind: "later", afterMs: 0 };
  }

  /** Clears the queue and the stored identity, so that the identity is sent again if the SDK is enabled later. */
  clearStored(): Maybe<void> {
    this.person = {};
    return then(this.vault.remove("person"), () => this.queue.clear());
  }
}
