// A small complete SDK. The suite's own test runs it, and it shows what a new SDK has to do. It favours clarity: it
// reads its storage for every operation, and it leaves out what depends on the platform.

import { randomBytes, randomUUID } from "node:crypto";
import { matching } from "./matching.mjs";
import { Records } from "./records.mjs";
import { currencyCode, decimal } from "./revenue.mjs";

const QUEUE_LIMIT = 1_000;
const BATCH_EVENTS = 100;
const BATCH_BYTES = 500_000;
const PARAMS_BYTES_MAX = 16_384;
const EARLIEST_MS = 1_420_070_400_000;
const FLUSH_DELAY_MS = 1_000;
const PAUSE_MS = 1_000;
const PAUSE_MAX_MS = 300_000;
const RETRY_AFTER_MAX_MS = 3_600_000;
const CONFIGURE_ERRORS_MAX = 5;
const REFUSALS = [false, "denied", "restricted"];
const REFUSED = { adUserData: false, adPersonalization: false };

const newToken = () => randomBytes(32).toString("base64url");
const later = (isAnswered, afterMs = 0) => ({ kind: "later", isAnswered, afterMs });

export class Sdk {
  problems = [];
  #clock;
  #records;
  #options = {};
  #isStarted = false;
  /** Calls before `configure`. */
  #pending = [];
  #revision = 1;
  #sentRevision = 0;
  #sentDevice;
  #configureErrors = 0;
  #isHalted = false;
  #isErased = false;
  #failures = 0;
  #batchMax = BATCH_EVENTS;
  #timer;
  #running;

  constructor(clock, folder) {
    this.#clock = clock;
    this.#records = new Records(folder);
  }

  configure({ key, baseUrl, ...options }) {
    this.#options = { key, baseUrl, ...options };
    this.#records.create("device", randomUUID());
    this.#records.create("eraseToken", newToken());
    if (options.openedUrl) this.#records.set("openedUrl", options.openedUrl);
    if (options.consent) this.#mergeConsent(options.consent);
    this.#isStarted = true;
    this.#pending.splice(0).forEach((call) => call());
    void this.flush();
  }

  /** Stores an event. Returns its id, or null if it was not recorded. */
  track(name, params = {}, ownId) {
    const { optedOut } = this.#state();
    const isDisabled = this.#records.get("enabled") === false;
    if (!name || optedOut || this.#isErased || isDisabled) return null;
    const { revenue, currency, ...rest } = { ...this.#records.get("globals"), ...params };
    const event = { eventId: this.#eventId(ownId), name: [...name].slice(0, 255).join(""), ...this.#timeOf() };
    const amount = revenue === undefined || revenue === null ? undefined : decimal(revenue);
    if (amount === null) this.problems.push("invalid_revenue");
    else if (amount !== undefined) event.revenue = amount;
    if (currencyCode(currency)) event.currency = currencyCode(currency);
    if (Buffer.byteLength(JSON.stringify(rest)) > PARAMS_BYTES_MAX) this.problems.push("invalid_params");
    else if (Object.keys(rest).length > 0) event.params = rest;
    event.consent = this.#consent();
    this.#add(event.revenue === undefined ? "e" : "r", JSON.stringify(event));
    this.#soon(FLUSH_DELAY_MS);
    return event.eventId;
  }

  setConsent(consent) {
    if (!this.#isStarted) return void this.#pending.push(() => this.setConsent(consent));
    this.#mergeConsent(consent);
    this.#soon(0);
  }

  setUserId(userId, userIdSignature) {
    this.#identify({ userId, ...(userIdSignature && { userIdSignature }) });
  }

  setMatching(email, phone) {
    const hashes = matching(email, phone);
    if (Object.keys(hashes).length > 0) this.#identify({ matching: hashes });
  }

  setGlobalParams(params) {
    this.#records.set("globals", params);
  }

  optOut() {
    if (!this.#state().optedOut) this.#refuse({ ...this.#consent(), ...REFUSED });
    this.#records.set("optedOut", true);
    this.#clearQueue();
    this.#soon(0);
  }

  optIn() {
    this.#records.remove("optedOut");
    this.#isErased = false;
    this.#revision++;
    this.#soon(0);
  }

  /** Forgets the person. Queued events keep the old device id. */
  reset() {
    // Queued events must not overtake a refusal that the server has not received.
    if (this.#records.get("refusal") && !this.#state().optedOut) this.#refuse(this.#consent());
    this.#records.remove("refusal");
    ["consent", "globals", "answer", "configured", "tokenConfirmed"].forEach((name) => this.#records.remove(name));
    this.#records.set("device", randomUUID());
    this.#records.set("eraseToken", newToken());
    this.#revision++;
    this.#soon(0);
  }

  eraseMe() {
    const { deviceId, eraseToken } = this.#state();
    this.#records.set("erase", { deviceId, eraseToken });
    const others = this.#refusals().filter((one) => one.deviceId !== deviceId);
    this.#records.set("refusals", others);
    this.#clearQueue();
    this.#isErased = true;
    this.#soon(0);
  }

  state() {
    const queued = this.#queue().filter(({ kind }) => kind !== "i").length;
    const { deviceId } = this.#state();
    return { deviceId, attribution: this.#records.get("answer") ?? null, queued, problems: this.problems };
  }

  /** Waits until no request is in progress. */
  async settle() {
    while (this.#running) await this.#running;
  }

  /** Sends everything that is due, one request at a time. */
  flush() {
    this.#clock.clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#running ??= this.#round().then((outcome) => {
      this.#running = undefined;
      if (outcome?.kind !== "later") return void (this.#failures = 0);
      const pause = Math.min(PAUSE_MS * 2 ** this.#failures++, PAUSE_MAX_MS) * (0.5 + Math.random() / 2);
      this.#soon(Math.max(outcome.afterMs, pause));
    });
    return this.#running;
  }

  #soon(delayMs) {
    // A new event does not shorten a back-off.
    if (this.#timer !== undefined || !this.#isStarted) return;
    this.#timer = this.#clock.setTimeout(() => void this.flush(), delayMs);
  }

  /** Sends until nothing is due. Returns the outcome that stops it. */
  async #round() {
    if (this.#records.get("erase")) return this.#sendErase();
    if (this.#isHalted) return;
    const { optedOut } = this.#state();
    while (this.#refusals().length > 0) {
      const outcome = await this.#sendRefusal();
      if (outcome) return outcome;
    }
    if (optedOut || this.#isErased) return;
    for (;;) {
      const [first] = this.#queue();
      const { deviceId } = this.#state();
      const isOld = first && first.deviceId !== deviceId;
      // Here or in another process, reset has made a new device.
      if (deviceId !== this.#sentDevice) this.#sentRevision = 0;
      if (this.#revision !== this.#sentRevision && !isOld) {
        const outcome = await this.#sendConfigure();
        if (outcome) return outcome;
      }
      const batch = this.#head();
      if (batch.length === 0) return;
      const outcome = await this.#sendBatch(batch);
      if (outcome) return outcome;
    }
  }

  async #sendConfigure() {
    const { deviceId, eraseToken } = this.#state();
    const revision = this.#revision;
    this.#sentDevice = deviceId;
    const openedUrl = this.#records.get("openedUrl") ?? undefined;
    const isConfirmed = this.#records.get("tokenConfirmed");
    const body = { deviceId, platform: this.#options.platform, sdkVersion: "reference-1", openedUrl };
    const token = isConfirmed ? undefined : eraseToken;
    const outcome = await this.#post(
      "configure",
      JSON.stringify({ ...body, consent: this.#consent(), eraseToken: token }),
    );
    if (this.#state().deviceId !== deviceId) return undefined;
    if (outcome.kind === "done") {
      if (typeof outcome.data.sdkEnabled !== "boolean") return later(false);
      if (!outcome.data.sdkEnabled) return this.#disable();
      this.#sentRevision = revision;
      this.#records.remove("openedUrl");
      this.#records.set("enabled", true);
      this.#records.set("configured", true);
      this.#records.set("tokenConfirmed", true);
      if (this.#revision === revision) this.#records.remove("refusal");
      this.#records.set("answer", outcome.data.attribution);
      return undefined;
    }
    if (outcome.kind === "refused") {
      this.problems.push("request_refused");
      this.#sentRevision = revision;
      return undefined;
    }
    if (outcome.kind !== "later") return this.#handle(outcome);
    // Events of a registered device do not wait. Those of a new device wait for a few error responses.
    const mayPass = this.#records.get("configured") || ++this.#configureErrors >= CONFIGURE_ERRORS_MAX;
    // All events wait until the server knows of a refusal.
    return outcome.isAnswered && mayPass && !this.#records.get("refusal") ? undefined : outcome;
  }

  async #sendBatch(batch) {
    const { deviceId, kind } = batch[0];
    const start = `{"deviceId":${JSON.stringify(deviceId)},`;
    const isIdentity = kind === "i";
    const texts = batch.map(({ text }) => text);
    const body = isIdentity ? start + texts[0].slice(1) : `${start}"events":[${texts.join(",")}]}`;
    const outcome = await this.#post(isIdentity ? "identify" : "events", body);
    if (outcome.kind === "done") {
      const isComplete = isIdentity || (Array.isArray(outcome.data) && outcome.data.length === batch.length);
      if (!isComplete) return later(false);
      if (!isIdentity && outcome.data.some(({ status }) => status === "rejected")) this.problems.push("event_rejected");
      this.#remove(batch);
      this.#batchMax = BATCH_EVENTS;
      this.#failures = 0;
      return undefined;
    }
    if (outcome.kind !== "refused") return this.#handle(outcome);
    if (batch.length > 1) {
      this.#batchMax = batch.length >> 1;
      return undefined;
    }
    this.problems.push("request_refused");
    this.#remove(batch);
    return undefined;
  }

  /** Stores a refusal with its device, to be sent ahead of everything else. */
  #refuse(consent) {
    const { deviceId, eraseToken } = this.#state();
    const refusal = { deviceId, platform: this.#options.platform, consent, eraseToken };
    this.#records.set("refusals", [...this.#refusals(), refusal]);
  }

  #refusals() {
    return this.#records.get("refusals") ?? [];
  }

  async #sendRefusal() {
    const outcome = await this.#post("configure", JSON.stringify(this.#refusals()[0]));
    if (outcome.kind === "later" || outcome.kind === "locked") return this.#handle(outcome);
    this.#records.set("refusals", this.#refusals().slice(1));
    return undefined;
  }

  async #sendErase() {
    const outcome = await this.#post("erase", JSON.stringify(this.#records.get("erase")));
    const { optedOut } = this.#state();
    const refusals = this.#refusals();
    if (outcome.kind === "later") return outcome;
    if (outcome.kind === "done" || outcome.kind === "refused") this.#records.clear();
    // The wish to be left alone outlives the data.
    if (optedOut) this.#records.set("optedOut", true);
    if (refusals.length > 0) this.#records.set("refusals", refusals);
    this.#isErased = true;
    return undefined;
  }

  /** Handles an outcome that ends the round. */
  #handle(outcome) {
    if (outcome.kind === "disabled") return this.#disable();
    if (outcome.kind !== "locked") return outcome;
    this.problems.push("invalid_api_key");
    this.#isHalted = true;
    return outcome;
  }

  #disable() {
    this.#records.set("enabled", false);
    this.#clearQueue();
    this.#isHalted = true;
    return { kind: "halt" };
  }

  async #post(endpoint, body) {
    const headers = { "Content-Type": "application/json", "X-Tributary-Key": this.#options.key };
    try {
      const url = `${this.#options.baseUrl}/api/track/${endpoint}`;
      const answer = await fetch(url, { method: "POST", headers, body });
      return classify(answer, await answer.text());
    } catch {
      return later(false);
    }
  }

  #state() {
    const get = (name) => this.#records.get(name);
    return { deviceId: get("device"), eraseToken: get("eraseToken"), optedOut: get("optedOut") };
  }

  #consent() {
    return this.#records.get("consent") ?? {};
  }

  #mergeConsent(consent) {
    this.#records.set("consent", { ...this.#consent(), ...consent });
    if (Object.values(consent).some((one) => REFUSALS.includes(one))) this.#records.set("refusal", true);
    this.#revision++;
  }

  #eventId(ownId) {
    if (ownId === undefined) return randomUUID();
    if (ownId && Buffer.byteLength(ownId) <= 255 && !ownId.includes("\0")) return ownId;
    this.problems.push("invalid_event_id");
    return randomUUID();
  }

  /** A clock before 2015 is wrong: the server then uses the time of arrival. */
  #timeOf() {
    const timestampMs = Math.floor(this.#clock.now());
    return timestampMs >= EARLIEST_MS ? { timestampMs } : {};
  }

  #identify(change) {
    this.#add("i", JSON.stringify(change));
    this.#soon(0);
  }

  #queue() {
    return this.#records.list("q.").map((name) => ({ name, ...this.#records.get(name) }));
  }

  /** Appends an entry. The number in its name keeps the order, even if the clock is set back. */
  #add(kind, text) {
    const last = this.#records.list("q.").at(-1);
    const number = last ? Number(last.split(".")[1]) + 1 : 1;
    const name = `q.${String(number).padStart(12, "0")}.${randomUUID()}`;
    this.#records.set(name, { kind, deviceId: this.#state().deviceId, text });
    const excess = this.#records.list("q.").length - (this.#options.queueLimit ?? QUEUE_LIMIT);
    if (excess <= 0) return;
    const queue = this.#queue();
    const cheapFirst = [...queue.filter((one) => one.kind === "e"), ...queue.filter((one) => one.kind !== "e")];
    this.#remove(cheapFirst.slice(0, excess));
    this.problems.push("queue_full");
  }

  /** Returns the next batch: events of one device up to the limits, or one identity. */
  #head() {
    const batch = [];
    let bytes = 0;
    for (const entry of this.#queue()) {
      if (batch.length >= this.#batchMax || (batch[0] && batch[0].deviceId !== entry.deviceId)) break;
      if (entry.kind === "i") return batch.length > 0 ? batch : [entry];
      bytes += Buffer.byteLength(entry.text) + 1;
      if (bytes > BATCH_BYTES && batch.length > 0) break;
      batch.push(entry);
    }
    return batch;
  }

  #remove(entries) {
    entries.forEach(({ name }) => this.#records.remove(name));
  }

  #clearQueue() {
    this.#remove(this.#queue());
  }
}

/** Classifies a response. A response that is not Tributary's, such as a captive portal's, confirms nothing. */
function classify({ status, headers }, text) {
  if (status === 204) return { kind: "done", data: null };
  const body = parse(text);
  if (status >= 200 && status < 300) return body?.data ? { kind: "done", data: body.data } : later(false);
  if (status >= 500 || status === 429 || status === 408) {
    return later(true, Math.min((Number(headers.get("Retry-After")) || 0) * 1000, RETRY_AFTER_MAX_MS));
  }
  const code = body?.error?.code;
  if (typeof code !== "string") return later(false);
  if (code === "sdk_disabled") return { kind: "disabled" };
  return status === 401 ? { kind: "locked" } : { kind: "refused", code };
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
