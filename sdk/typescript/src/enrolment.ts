import { clickInUrl, configureBody, gather, startUrl, type Evidence, type Launch } from "./device.js";
import type { Http } from "./http.js";
import { reportInvalidKey, type Verdict } from "./sender.js";
import type { Attribution, Clock, Consent, Device, Maybe, OpenedLink, Options } from "./types.js";
import { all, then, type Vault } from "./vault.js";
import { VERSION } from "./version.js";

/** Number of failed `configure` calls after which a new device's events are sent without waiting for it. */
const ERRORS_MAX = 5;

/** The last response, as stored. */
interface StoredResponse {
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
  http: Http;
  clock: Clock;
  device: Device;
  /** Options with callbacks that do not throw. */
  options: Options;
  deviceId(): Promise<string>;
  /** Called with the conversion-value configuration in a response. */
  onDocument(document: unknown): Maybe<void>;
  /** Called when the server disables the SDK. */
  onDisabled(): Maybe<void>;
}

/** Registers the device with `configure` and stores the attribution. */
export class Enrolment {
  launch: Launch = { firstAt: 0 };
  private consent: Consent = {};
  private answer: StoredResponse = { enabled: true };
  /** Current revision of the data to send, and the last revision that was sent. */
  private revision = 1;
  private sentRevision = 0;
  private errors = 0;
  private hasAskedStartUrl = false;
  private waiters: ((attribution: Attribution | null) => void)[] = [];

  constructor(private readonly context: EnrolmentContext) {}

  /** False if the server disabled the SDK. */
  get isEnabled(): boolean {
    return this.answer.enabled;
  }

  /** Whether the server has received the current data. */
  get isUpToDate(): boolean {
    return this.sentRevision === this.revision;
  }

  load(): Maybe<void> {
    const { vault, clock } = this.context;
    const records = ["launch", "consent", "answer"].map((key) => vault.read<object>(key));
    return all(records, ([launch, consent, answer]) => {
      this.launch = (launch as Launch | null) ?? { firstAt: clock.now() };
      this.consent = { ...consent };
      this.answer = (answer as StoredResponse | null) ?? this.answer;
      const clickId = clickInUrl();
      if (clickId) this.launch.clickId = clickId;
      return this.storeLaunch();
    });
  }

  setConsent(consent: Consent): Maybe<void> {
    this.consent = { ...this.consent, ...consent };
    this.revision++;
    return this.context.vault.write("consent", this.consent);
  }

  openUrl(url: string): Maybe<void> {
    this.launch.openedUrl = url;
    this.revision++;
    return this.storeLaunch();
  }

  /** Returns the attribution, or waits for the first response. */
  attribution(timeoutMs: number): Promise<Attribution | null> {
    const { attribution, enabled } = this.answer;
    if (attribution || !enabled) return Promise.resolve(attribution ?? null);
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
    const { device, options, clock, http } = this.context;
    const providers = options.providers ?? {};
    await this.askStartUrl();
    const evidence = await gather(device, providers, this.launch, this.consent, clock);
    const deviceId = await this.context.deviceId();
    const revision = this.revision;
    const sentLaunch = { ...this.launch };
    const outcome = await http.post("configure", this.body(deviceId, evidence));
    switch (outcome.kind) {
      case "done": {
        const data = outcome.data as Configured | null;
        if (typeof data?.sdkEnabled !== "boolean") return { kind: "later", afterMs: 0 };
        if (!data.sdkEnabled) return this.disable();
        this.sentRevision = revision;
        if (this.launch.clickId === sentLaunch.clickId) delete this.launch.clickId;
        if (this.launch.openedUrl === sentLaunch.openedUrl) delete this.launch.openedUrl;
        if (evidence.installReferrer) this.launch.referrerSent = true;
        if (evidence.adServicesToken) this.launch.tokenSent = true;
        this.launch.configured = true;
        await this.storeLaunch();
        await this.applyResponse(data);
        return undefined;
      }
      case "refused":
        this.context.options.onProblem?.({ code: "request_refused", message: `configure: ${outcome.code}` });
        this.sentRevision = revision;
        return undefined;
      case "disabled":
        return this.disable();
      case "locked":
        return reportInvalidKey((problem) => options.onProblem?.(problem));
      case "later":
        if (!outcome.answered) return outcome;
        // A known device's events do not wait; a new device's wait for a few errors. The server accepts early events.
        return this.launch.configured || ++this.errors >= ERRORS_MAX ? undefined : outcome;
      case "same":
        return { kind: "later", afterMs: 0 };
    }
  }

  /** Returns the body of `configure`. */
  body(deviceId: string, evidence: Evidence = {}): string {
    const { device, options } = this.context;
    return configureBody(deviceId, device, this.launch, this.consent, evidence, {
      sdkVersion: VERSION,
      userId: options.userId,
      userIdSignature: options.userIdSignature,
      asksReferrer: device.platform === "android" && options.providers?.installReferrer !== undefined,
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
    const url = await startUrl(this.context.options.providers ?? {}, this.context.clock);
    if (url) this.launch.openedUrl = url;
    await this.storeLaunch();
  }

  private async applyResponse(data: Configured): Promise<void> {
    const { options, vault } = this.context;
    const attribution = data.attribution ?? undefined;
    const isNews = JSON.stringify(attribution) !== JSON.stringify(this.answer.attribution);
    this.answer = { enabled: true, ...(attribution && { attribution }) };
    await vault.write("answer", this.answer);
    if (attribution && isNews) options.onAttribution?.(attribution);
    this.resolveWaiters(attribution ?? null);
    if (data.opened) options.onOpenedLink?.(data.opened);
    await this.context.onDocument(data.skan);
  }

  private storeLaunch(): Maybe<void> {
    return then(this.context.vault.write("launch", this.launch), () => undefined);
  }
}
