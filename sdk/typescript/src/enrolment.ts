import { clickInUrl, type Launch } from "./device.js";
import type { Http } from "./http.js";
import { notify } from "./notify.js";
import { consentOf, isRefusal, type Privacy } from "./privacy.js";
import { reportInvalidKey, type Verdict } from "./sender.js";
import type { Attribution, Clock, Device, Maybe, OpenedLink, Options, Problem } from "./types.js";
import { secret } from "./uuid.js";
import { all, type Vault } from "./vault.js";
import { VERSION } from "./version.js";

/** Number of failed `configure` calls after which a new device's events are sent without waiting for it. */
const ERRORS_MAX = 5;

/** The last response, as stored. */
export interface StoredResponse {
  enabled: boolean;
  attribution?: Attribution;
}

/** Data in a `configure` response. */
interface Configured {
  sdkEnabled: boolean;
  attribution?: Attribution | null;
  opened?: OpenedLink | null;
  skan?: unknown;
}

/** Dependencies of the enrolment. */
export interface EnrolmentContext {
  vault: Vault;
  privacy: Privacy;
  http: Http;
  clock: Clock;
  device: Device;
  options: Options;
  deviceId(): Maybe<string>;
  onProblem(problem: Problem): void;
  /** Called with the conversion-value configuration in a response. */
  onDocument(document: unknown): Maybe<void>;
  /** Called when the server disables the SDK. */
  onDisabled(): Maybe<void>;
}

/** Registers the device with `configure` and stores the attribution. */
export class Enrolment {
  launch: Launch;
  answer: StoredResponse = { enabled: true };
  /** Current revision of the data to send, and the last revision that was sent. */
  revision = 1;
  private sentRevision = 0;
  private errors = 0;
  private hasAskedStartUrl = false;
  private waiters: ((attribution: Attribution | null) => void)[] = [];

  constructor(readonly context: EnrolmentContext) {
    this.launch = { firstAt: context.clock.now() };
  }

  /** False if the server disabled the SDK. */
  get isEnabled(): boolean {
    return this.answer.enabled;
  }

  /** Whether the server has received the current data. */
  get isUpToDate(): boolean {
    return this.sentRevision === this.revision && this.launch.sentConsent === this.consentJson();
  }

  /** Whether the user refuses, and the server has not confirmed that it knows. */
  get isHeld(): boolean {
    return isRefusal(this.context.privacy.record) && this.launch.sentConsent !== this.consentJson();
  }

  /** Returns the version of the data to send. Another version needs another request. */
  get version(): string {
    return this.revision + this.consentJson();
  }

  /** Starts with the data that was read. With another device id than before, the server has not received the token. */
  begin(isSameDevice: boolean): Maybe<void> {
    const { launch } = this;
    launch.eraseToken ??= this.newToken();
    if (!isSameDevice) delete launch.eraseTokenSent;
    const clickId = clickInUrl();
    if (clickId && !this.context.privacy.record.stop) launch.clickId = launch.lastClickId = clickId;
    return this.storeLaunch();
  }

  /** Makes the secret that proves the right to erase the device. */
  newToken(): string | undefined {
    const { onProblem, options } = this.context;
    const { native, providers } = options;
    const token = secret() ?? native?.secret(providers);
    if (!token) onProblem({ code: "no_secure_random", message: "eraseMe needs crypto.getRandomValues." });
    return token;
  }

  /** Reads the stored device's data. Returns whether `reset` has made the device since the last time. */
  read(): Maybe<boolean> {
    const records = ["launch", "answer"].map((key) => this.context.vault.read<object>(key));
    return all(records, ([launch, answer]) => {
      const stored = (launch as Launch | null) ?? this.launch;
      const isReset = stored.resets !== this.launch.resets;
      // Without a reset, what brought the person here belongs to the stored device too.
      this.launch = { ...(!isReset && this.launch), ...stored };
      this.answer = (answer as StoredResponse | null) ?? this.answer;
      this.revision++;
      return isReset;
    });
  }

  openUrl(url: string): Maybe<void> {
    this.noteUrl(url);
    this.revision++;
    return this.storeLaunch();
  }

  /** Returns the latest click id, otherwise that of the attribution. */
  get clickId(): string | null {
    return this.launch.lastClickId ?? this.answer.attribution?.clickId ?? null;
  }

  /** Returns the attribution, or waits for the first response. */
  attribution(timeoutMs: number): Promise<Attribution | null> {
    const { attribution, enabled } = this.answer;
    if (attribution || !enabled || this.context.privacy.record.stop) return Promise.resolve(attribution ?? null);
    const { clock } = this.context;
    return new Promise((resolve) => {
      const timer = clock.setTimeout(() => resolve(null), timeoutMs);
      this.waiters.push((found) => {
        clock.clearTimeout(timer);
        resolve(found);
      });
    });
  }

  /** Registers the device if it is due. Returns undefined if the queue may be sent. */
  async enrol(): Promise<Verdict | undefined> {
    if (this.isUpToDate) return undefined;
    const { device, options, clock, privacy, onProblem, vault, http, deviceId } = this.context;
    const { native, providers = {} } = options;
    await this.askStartUrl();
    const { revision, launch } = this;
    const evidence = await native?.gather(device, providers, launch, privacy, clock);
    // Meanwhile, the user opted out, the device was reset, or a URL was opened that needs other evidence.
    if (privacy.record.stop || this.revision !== revision) return undefined;
    const id = await deviceId();
    const stored = await vault.read<Launch>("launch");
    // Two tabs that start at the same time make two tokens. The stored one holds.
    if (stored?.eraseToken) {
      launch.eraseToken = stored.eraseToken;
      launch.eraseTokenSent = stored.eraseTokenSent === true;
    }
    launch.tried = true;
    // Here or in another tab, the device was reset or erased. The new device has its own request.
    if (this.launch !== launch) return undefined;
    await this.storeLaunch();
    if (this.launch !== launch) return undefined;
    const consent = this.consentJson();
    const sentLaunch = { ...launch };
    const outcome = await http.post("configure", this.body(id, evidence?.fields()));
    await deviceId();
    if (this.launch !== launch) return undefined;
    switch (outcome.kind) {
      case "done": {
        const data = outcome.data as Configured | null;
        if (typeof data?.sdkEnabled !== "boolean") return { kind: "later", afterMs: 0 };
        if (!data.sdkEnabled) return this.disable();
        this.sentRevision = revision;
        launch.sentConsent = consent;
        if (launch.clickId === sentLaunch.clickId) delete launch.clickId;
        if (launch.openedUrl === sentLaunch.openedUrl) delete launch.openedUrl;
        Object.assign(launch, evidence?.sent, { configured: true, eraseTokenSent: true });
        await this.storeLaunch();
        await this.applyResponse(data);
        return undefined;
      }
      case "refused":
        onProblem({ code: "request_refused", message: `The server rejected configure: ${outcome.code}.` });
        this.sentRevision = revision;
        launch.sentConsent = consent;
        return undefined;
      case "disabled":
        return this.disable();
      case "locked":
        return reportInvalidKey(onProblem);
      case "later":
        if (!outcome.answered) return outcome;
        // Nothing may overtake a refusal: the server could still deliver events that were tracked before it.
        if (this.isHeld) return outcome;
        // A known device's events do not wait; a new device's wait for a few errors. The server accepts early events.
        return launch.configured || ++this.errors >= ERRORS_MAX ? undefined : outcome;
      default:
        return { kind: "later", afterMs: 0 };
    }
  }

  /** Returns the body of `configure`. */
  body(deviceId: string, evidence?: object): string {
    const { device, options, privacy } = this.context;
    const { clickId, openedUrl, eraseToken, eraseTokenSent } = this.launch;
    return JSON.stringify({
      deviceId,
      ...device,
      sdkVersion: VERSION,
      userId: options.userId,
      userIdSignature: options.userIdSignature,
      openedUrl,
      arClickId: clickId,
      ...evidence,
      eraseToken: eraseTokenSent ? undefined : eraseToken,
      consent: consentOf(privacy.record),
    });
  }

  /** Disables the SDK until the next start, which asks the server again. */
  async disable(): Promise<Verdict> {
    this.answer = { enabled: false };
    await this.context.vault.write("answer", this.answer);
    await this.context.onDisabled();
    this.resolveWaiters(null);
    return { kind: "halt" };
  }

  /** Resolves the pending `getAttribution` calls. */
  resolveWaiters(attribution: Attribution | null): void {
    this.waiters.splice(0).forEach((resolve) => resolve(attribution));
  }

  /** Reads the URL that started the app, and stores it until it is sent. */
  private async askStartUrl(): Promise<void> {
    if (this.hasAskedStartUrl) return;
    this.hasAskedStartUrl = true;
    const { native, providers = {} } = this.context.options;
    const url = await native?.startUrl(providers, this.context.clock);
    if (url) this.noteUrl(url);
    await this.storeLaunch();
  }

  private noteUrl(url: string): void {
    this.launch.openedUrl = url;
    const clickId = clickInUrl(url);
    if (clickId) this.launch.lastClickId = clickId;
  }

  private consentJson(): string {
    return JSON.stringify(consentOf(this.context.privacy.record));
  }

  private async applyResponse(data: Configured): Promise<void> {
    const { options, vault } = this.context;
    const attribution = data.attribution ?? undefined;
    const isNews = JSON.stringify(attribution) !== JSON.stringify(this.answer.attribution);
    this.answer = { enabled: true, ...(attribution && { attribution }) };
    await vault.write("answer", this.answer);
    if (attribution && isNews) notify(options.onAttribution, attribution);
    this.resolveWaiters(attribution ?? null);
    if (data.opened) notify(options.onOpenedLink, data.opened);
    await this.context.onDocument(data.skan);
  }

  storeLaunch(): Maybe<void> {
    return this.context.vault.write("launch", this.launch);
  }
}
