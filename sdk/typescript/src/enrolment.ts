import { clickInUrl, configureBody, gather, startUrl, type Evidence, type Launch } from "./device.js";
import type { Http } from "./http.js";
import { lockedOut, type Verdict } from "./sender.js";
import type { Attribution, Clock, Consent, Device, Maybe, OpenedLink, Options } from "./types.js";
import { all, then, type Vault } from "./vault.js";
import { VERSION } from "./version.js";

/** Errors of the server to `configure` after which a new device's events no longer wait for it. */
const ERRORS_MAX = 5;

/** What the server said last. */
interface Answer {
  enabled: boolean;
  attribution?: Attribution;
}

/** The data of a `configure` answer. */
interface Configured {
  sdkEnabled: boolean;
  attribution?: Attribution | null;
  opened?: OpenedLink | null;
  skan?: unknown;
}

/** What the enrolment needs of the rest. */
export interface Surroundings {
  vault: Vault;
  http: Http;
  clock: Clock;
  device: Device;
  /** With callbacks that do not throw. */
  options: Options;
  deviceId(): Promise<string>;
  /** A conversion-value configuration came with the answer. */
  onDocument(document: unknown): Maybe<void>;
  /** The app told its SDKs to stop. */
  onDisabled(): Maybe<void>;
}

/** Tells the server what the device is, hears what brought it here, and keeps both. */
export class Enrolment {
  launch: Launch = { firstAt: 0 };
  private consent: Consent = {};
  private answer: Answer = { enabled: true };
  /** What is to be told has changed that often, and was told up to there. */
  private revision = 1;
  private toldRevision = 0;
  private errors = 0;
  private hasAskedStartUrl = false;
  private waiters: ((attribution: Attribution | null) => void)[] = [];

  constructor(private readonly around: Surroundings) {}

  /** False: the app told its SDKs to stop. */
  get isEnabled(): boolean {
    return this.answer.enabled;
  }

  /** Whether everything there is to tell has been told. */
  get isTold(): boolean {
    return this.toldRevision === this.revision;
  }

  load(): Maybe<void> {
    const { vault, clock } = this.around;
    const records = ["launch", "consent", "answer"].map((key) => vault.read<object>(key));
    return all(records, ([launch, consent, answer]) => {
      this.launch = (launch as Launch | null) ?? { firstAt: clock.now() };
      this.consent = { ...consent };
      this.answer = (answer as Answer | null) ?? this.answer;
      const clickId = clickInUrl();
      if (clickId) this.launch.clickId = clickId;
      return this.keepLaunch();
    });
  }

  setConsent(consent: Consent): Maybe<void> {
    this.consent = { ...this.consent, ...consent };
    this.revision++;
    return this.around.vault.write("consent", this.consent);
  }

  openUrl(url: string): Maybe<void> {
    this.launch.openedUrl = url;
    this.revision++;
    return this.keepLaunch();
  }

  /** The decision; where there is none yet, the server's answer is waited for. */
  attribution(timeoutMs: number): Promise<Attribution | null> {
    const { attribution, enabled } = this.answer;
    if (attribution || !enabled) return Promise.resolve(attribution ?? null);
    const { clock } = this.around;
    return new Promise((resolve) => {
      const timer = clock.setTimeout(() => resolve(null), timeoutMs);
      this.waiters.push((found) => {
        clock.clearTimeout(timer);
        resolve(found);
      });
    });
  }

  /** Registers the device where that is due. Nothing: the queue may go. */
  async enrol(): Promise<Verdict | undefined> {
    if (this.isTold) return undefined;
    const { device, options, clock, http } = this.around;
    const providers = options.providers ?? {};
    await this.askStartUrl();
    const evidence = await gather(device, providers, this.launch, this.consent, clock);
    const deviceId = await this.around.deviceId();
    const telling = this.revision;
    const told = { ...this.launch };
    const outcome = await http.post("configure", this.body(deviceId, evidence));
    switch (outcome.kind) {
      case "done": {
        const data = outcome.data as Configured | null;
        if (typeof data?.sdkEnabled !== "boolean") return { kind: "later", afterMs: 0 };
        if (!data.sdkEnabled) return this.disable();
        this.toldRevision = telling;
        if (this.launch.clickId === told.clickId) delete this.launch.clickId;
        if (this.launch.openedUrl === told.openedUrl) delete this.launch.openedUrl;
        if (evidence.installReferrer) this.launch.referrerSent = true;
        if (evidence.adServicesToken) this.launch.tokenSent = true;
        this.launch.configured = true;
        await this.keepLaunch();
        await this.hear(data);
        return undefined;
      }
      case "refused":
        this.around.options.onProblem?.({ code: "request_refused", message: `configure: ${outcome.code}` });
        this.toldRevision = telling;
        return undefined;
      case "disabled":
        return this.disable();
      case "locked":
        return lockedOut((problem) => options.onProblem?.(problem));
      case "later":
        if (!outcome.answered) return outcome;
        // A device that is known need not wait, and a new one not for ever: events without it are kept, too.
        return this.launch.configured || ++this.errors >= ERRORS_MAX ? undefined : outcome;
      case "same":
        return { kind: "later", afterMs: 0 };
    }
  }

  /** What `configure` has to tell, with what the native side said. */
  body(deviceId: string, evidence: Evidence = {}): string {
    const { device, options } = this.around;
    return configureBody(deviceId, device, this.launch, this.consent, evidence, {
      sdkVersion: VERSION,
      userId: options.userId,
      asksReferrer: device.platform === "android" && options.providers?.installReferrer !== undefined,
    });
  }

  /** Stops everything until the next start, which asks again. */
  async disable(): Promise<Verdict> {
    this.answer = { enabled: false };
    await this.around.vault.write("answer", this.answer);
    await this.around.onDisabled();
    this.release(null);
    return { kind: "halt" };
  }

  /** Answers those who wait for the decision. */
  release(attribution: Attribution | null): void {
    this.waiters.splice(0).forEach((tell) => tell(attribution));
  }

  /** Kept before it is told: the URL that started the app is known only now. */
  private async askStartUrl(): Promise<void> {
    if (this.hasAskedStartUrl) return;
    this.hasAskedStartUrl = true;
    const url = await startUrl(this.around.options.providers ?? {}, this.around.clock);
    if (url) this.launch.openedUrl = url;
    await this.keepLaunch();
  }

  private async hear(data: Configured): Promise<void> {
    const { options, vault } = this.around;
    const attribution = data.attribution ?? undefined;
    const isNews = JSON.stringify(attribution) !== JSON.stringify(this.answer.attribution);
    this.answer = { enabled: true, ...(attribution && { attribution }) };
    await vault.write("answer", this.answer);
    if (attribution && isNews) options.onAttribution?.(attribution);
    this.release(attribution ?? null);
    if (data.opened) options.onOpenedLink?.(data.opened);
    await this.around.onDocument(data.skan);
  }

  private keepLaunch(): Maybe<void> {
    return then(this.around.vault.write("launch", this.launch), () => undefined);
  }
}
