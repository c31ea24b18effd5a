import { systemClock } from "./clock.js";
import { watchPage } from "./page.js";
import { Session } from "./session.js";
import type { Attribution, Consent, Maybe, Options, Params, TrackOptions } from "./types.js";
import { then } from "./vault.js";

/** Calls that are kept in memory until there is a storage for them. */
const EARLY_MAX = 1_000;
const ATTRIBUTION_TIMEOUT_MS = 10_000;

interface Early {
  run(session: Session): void;
  drop(): void;
}

/**
 * The SDK. One is enough for an app, and the package exports its methods as functions; more are for tests.
 *
 * Nothing throws or rejects for want of a network, a storage or a server: an app must not fail because it is measured.
 * Only `configure` throws, when it is not told what it cannot do without.
 */
export class Tributary {
  private options: Options | undefined;
  /** There once what earlier sessions left has been read. */
  private session: Session | undefined;
  private loading: Session | undefined;
  private early: Early[] = [];

  /** Begins. A second call without `shutdown` in between is ignored. */
  configure = (options: Options): Promise<void> => {
    if (this.loading) return Promise.resolve();
    const lifecycle = options.lifecycle ?? watchPage();
    const session = new Session({ ...options, ...(lifecycle && { lifecycle }) });
    this.options = options;
    this.loading = session;
    const loaded = then(session.load(), () => {
      if (this.loading !== session) return;
      this.session = session;
      this.early.splice(0).forEach(({ run }) => run(session));
      session.start();
    });
    return Promise.resolve(loaded);
  };

  /**
   * Records an event. The promise gives its id once it is stored, or null where it was not recorded. `options.eventId`
   * is an id of your own, under which a website may report the same event.
   */
  trackEvent = (name: string, params?: Params, options?: TrackOptions): Promise<string | null> => {
    const at = (this.options?.clock ?? systemClock).now();
    return this.call((session) => session.track({ name, params, options, at }), null);
  };

  /** Hashes on the device what networks recognise people by. Clear text never leaves it. */
  setAdvancedMatching = (email?: string | null, phone?: string | null): Promise<void> =>
    this.call((session) => session.setAdvancedMatching(email, phone), undefined);

  /** Says who the person is, in the app's own words; null when nobody is signed in. */
  setUserId = (userId: string | null): Promise<void> => this.call((session) => session.setUserId(userId), undefined);

  /** Says what the person agreed to. What is left out stays as it was. */
  setConsent = (consent: Consent): Promise<void> => this.call((session) => session.setConsent(consent), undefined);

  /** Says which URL opened the app while it was running. */
  openUrl = (url: string): Promise<void> => this.call((session) => session.openUrl(url), undefined);

  /** What the install is credited to; null when nobody knows in time, or the SDK was told to stop. */
  getAttribution = (timeoutMs = ATTRIBUTION_TIMEOUT_MS): Promise<Attribution | null> =>
    this.call((session) => session.getAttribution(timeoutMs), null);

  /** The id of this device, for the server and for a billing provider's `tributaryId`. */
  getDeviceId = (): Promise<string> => this.call((session) => session.storedDeviceId(), "");

  /** Sends what is queued, now. True: nothing is left. */
  flush = (): Promise<boolean> => this.call((session) => session.flush(), false);

  /** Ends everything. What is queued stays, for the next `configure`. */
  shutdown = async (): Promise<void> => {
    const session = this.loading;
    this.session = this.loading = this.options = undefined;
    await session?.shutdown();
  };

  /** Runs a call now, or keeps it until there is a session. */
  private call<T>(run: (session: Session) => Maybe<T>, dropped: T): Promise<T> {
    if (this.session) return Promise.resolve(run(this.session));
    return new Promise((resolve) => {
      this.early.push({ run: (session) => resolve(run(session)), drop: () => resolve(dropped) });
      if (this.early.length > EARLY_MAX) this.early.shift()?.drop();
    });
  }
}
