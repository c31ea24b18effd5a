import { systemClock } from "./clock.js";
import { watchPage } from "./page.js";
import { Session } from "./session.js";
import type { Attribution, Consent, Maybe, Options, Params, TrackOptions } from "./types.js";
import { then } from "./vault.js";

/** Maximum number of calls buffered before `configure`. */
const PENDING_MAX = 1_000;
const ATTRIBUTION_TIMEOUT_MS = 10_000;

interface PendingCall {
  run(session: Session): void;
  drop(): void;
}

/**
 * The SDK. The package exports one instance's methods as functions; further instances are for tests.
 *
 * No method throws or rejects because of network, storage or server errors. Only `configure` throws, if a required
 * option is missing.
 */
export class Tributary {
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
    return this.call((session) => session.track({ name, params, options, at }), null);
  };

  /** Sets the email address and phone number that ad networks match users by. Only hashes leave the device. */
  setAdvancedMatching = (email?: string | null, phone?: string | null): Promise<void> =>
    this.call((session) => session.setAdvancedMatching(email, phone), undefined);

  /** Sets your own id for the user; pass null after sign-out. */
  setUserId = (userId: string | null, userIdSignature?: string): Promise<void> =>
    this.call((session) => session.setUserId(userId, userIdSignature), undefined);

  /** Sets the user's consent. Omitted fields stay unchanged. */
  setConsent = (consent: Consent): Promise<void> => this.call((session) => session.setConsent(consent), undefined);

  /** Reports a URL that opened the running app. */
  openUrl = (url: string): Promise<void> => this.call((session) => session.openUrl(url), undefined);

  /** Returns the attribution of the install; null after the timeout, or if the SDK is disabled. */
  getAttribution = (timeoutMs = ATTRIBUTION_TIMEOUT_MS): Promise<Attribution | null> =>
    this.call((session) => session.getAttribution(timeoutMs), null);

  /** Returns the device id. Pass it to your billing provider as `tributaryId`. */
  getDeviceId = (): Promise<string> => this.call((session) => session.storedDeviceId(), "");

  /** Sends the queue now. Resolves to true if it is empty afterwards. */
  flush = (): Promise<boolean> => this.call((session) => session.flush(), false);

  /** Stops the SDK. The queue stays stored for the next `configure`. */
  shutdown = async (): Promise<void> => {
    const session = this.loading;
    this.session = this.loading = this.options = undefined;
    await session?.shutdown();
  };

  /** Runs a call now, or buffers it until the session is loaded. */
  private call<T>(run: (session: Session) => Maybe<T>, dropped: T): Promise<T> {
    if (this.session) return Promise.resolve(run(this.session));
    return new Promise((resolve) => {
      this.pending.push({ run: (session) => resolve(run(session)), drop: () => resolve(dropped) });
      if (this.pending.length > PENDING_MAX) this.pending.shift()?.drop();
    });
  }
}
