import { systemClock } from "./clock.js";
import { watchPage } from "./page.js";
import { Session } from "./session.js";
import type { Attribution, Consent, Maybe, Options, Params, TrackOptions } from "./types.js";
import { then } from "./vault.js";

/** Number of calls buffered before `configure` above which the oldest events are dropped, but no other calls. */
const PENDING_MAX = 1_000;
const ATTRIBUTION_TIMEOUT_MS = 10_000;

interface PendingCall {
  run(session: Session): void;
  /** Resolves a dropped event's call. */
  drop: (() => void) | undefined;
}

/**
 * The SDK without the parts that few apps need. The package exports one instance's methods as functions.
 *
 * No method throws or rejects because of network, storage or server errors. Only `configure` throws, if a required
 * option is missing.
 */
export class Client {
  private options: Options | undefined;
  /** Set once the stored state is loaded. */
  private session: Session | undefined;
  private loading: Session | undefined;
  private pending: PendingCall[] = [];

  /** Starts the SDK. A second call without `shutdown` in between is ignored. */
  configure = (options: Options): Promise<void> => {
    if (this.loading) return Promise.resolve();
    const lifecycle = options.lifecycle ?? watchPage();
    const session = new Session({ ...options, ...(lifecycle && { lifecycle }) });
    this.options = options;
    this.loading = session;
    // Takes effect after the calls that were made before, like any other call.
    if (options.consent) void this.setConsent(options.consent);
    const loaded = then(session.load(), () => {
      if (this.loading !== session) return;
      this.session = session;
      this.pending.splice(0).forEach(({ run }) => run(session));
      session.start();
    });
    return Promise.resolve(loaded);
  };

  /**
   * Records an event. Resolves to its id once it is stored, or to null if it was not recorded. Use `options.eventId` if
   * your website or billing provider reports the same event under this id.
   */
  trackEvent = (name: string, params?: Params, options?: TrackOptions): Promise<string | null> => {
    const at = (this.options?.clock ?? systemClock).now();
    const run = (session: Session): Maybe<string | null> => session.track({ name, params, options, at });
    const oldest = this.pending.length >= PENDING_MAX ? this.pending.findIndex(({ drop }) => drop) : -1;
    if (oldest >= 0) this.pending.splice(oldest, 1)[0]!.drop!();
    return this.call(run, (resolve) => resolve(null));
  };

  /** Sets parameters that are added to every event until the app ends; pass null to remove them. */
  setGlobalParams = (params: Params | null): Promise<void> => this.call((session) => session.setGlobalParams(params));

  /** Sets your own id for the user; pass null after sign-out. */
  setUserId = (userId: string | null, userIdSignature?: string): Promise<void> =>
    this.call((session) => session.setUserId(userId, userIdSignature));

  /** Sets the user's consent. Omitted fields stay unchanged. Every event carries the consent in force. */
  setConsent = (consent: Consent): Promise<void> => this.call((session) => session.setConsent(consent));

  /** Reports a URL that opened the running app. */
  openUrl = (url: string): Promise<void> => this.call((session) => session.openUrl(url));

  /** Returns the attribution of the install; null after the timeout, or if the SDK is disabled. */
  getAttribution = (timeoutMs = ATTRIBUTION_TIMEOUT_MS): Promise<Attribution | null> =>
    this.call((session) => session.getAttribution(timeoutMs));

  /** Returns the device id. Pass it to your billing provider as `tributaryId`. */
  getDeviceId = (): Promise<string> => this.call<string>((session) => session.storedDeviceId());

  /** Returns the id of the latest click that led here, or of the click that the install is attributed to. */
  getClickId = (): Promise<string | null> => this.call((session) => session.clickId);

  /** Sends the queue now. Resolves to true if it is empty afterwards. */
  flush = (): Promise<boolean> => this.call((session) => session.flush());

  /** Stops the SDK. The queue stays stored for the next `configure`. */
  shutdown = async (): Promise<void> => {
    const session = this.loading;
    this.session = this.loading = this.options = undefined;
    await session?.shutdown();
  };

  /**
   * Runs a call now, or buffers it until the session is loaded.
   * @internal
   */
  call<T>(run: (session: Session) => Maybe<T>, drop?: (resolve: (value: T) => void) => void): Promise<T> {
    if (this.session) return Promise.resolve(run(this.session));
    return new Promise((resolve) => {
      this.pending.push({ run: (session) => resolve(run(session)), drop: drop && (() => drop(resolve)) });
    });
  }
}
