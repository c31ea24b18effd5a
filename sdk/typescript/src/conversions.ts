import {
  evaluate,
  NEW_STATE,
  windowAt,
  type AgedDocument,
  type CountedEvent,
  type Document,
  type State,
} from "./evaluate.js";
import type { Event } from "./event.js";
import type { Http } from "./http.js";
import { notify } from "./notify.js";
import { kindOf, sequenceOf } from "./queue.js";
import type { Clock, ConversionValue, Maybe, Options } from "./types.js";
import { all, then, type Vault } from "./vault.js";

/** Minimum interval between requests for the configuration. */
const REFRESH_MS = 3_600_000;
/** The document used if the server has no configuration. */
const NONE: Document = { version: 0, enabled: false, currency: "USD", windows: [] };

interface StoredConversions {
  state: State;
  /** Queue sequence of the last counted event. Later events are uncounted if the app was killed. */
  sequence: number;
  /** Version of the document used for the last platform call. */
  version: number;
}

interface CachedDocument {
  document: Document;
  etag: string | null;
  fetchedAt: number;
}

/** Evaluates conversion values. */
export function conversionValues(...context: ConstructorParameters<typeof Conversions>): Conversions {
  return new Conversions(...context);
}

/** Counts events and reports conversion values to the platform. */
export class Conversions {
  private record: StoredConversions = { state: NEW_STATE, sequence: 0, version: 0 };
  private cached: CachedDocument | null = null;
  private firstAt = 0;
  private isCalling = false;
  private isDueAgain = false;

  constructor(
    private readonly vault: Vault,
    private readonly http: Http,
    private readonly clock: Clock,
    private readonly options: Options,
    private readonly isEnabled: () => boolean,
  ) {}

  /** Loads the stored state and counts queued events that are not counted yet. */
  load(keys: string[], firstAt: number): Maybe<void> {
    this.firstAt = firstAt;
    return all<object | null, void>([this.vault.read("skan"), this.vault.read("skanDocument")], ([record, cached]) => {
      this.record = { ...this.record, ...record };
      this.cached = cached as CachedDocument | null;
      const missed = keys.filter((key) => kindOf(key) !== "i" && sequenceOf(key) > this.record.sequence);
      return all(
        missed.map((key) => this.vault.read<Event>(key)),
        (events) => {
          events.forEach((event, index) => event && this.addWaiting(missed[index]!, event));
          return this.evaluate();
        },
      );
    });
  }

  /** Counts an event queued under this key. */
  count(key: string, event: Event): Maybe<void> {
    return this.evaluate(this.toCountedEvent(key, event));
  }

  /** Stores the server's configuration; `null` means that the server has none. */
  storeDocument(document: unknown, etag: string | null): Maybe<void> {
    this.cached = { document: (document as Document | null) ?? NONE, etag, fetchedAt: this.clock.now() };
    return then(this.vault.write("skanDocument", this.cached), () => this.evaluate());
  }

  /** Fetches the configuration if it is due. */
  async refresh(deviceId: string): Promise<void> {
    const age = this.cached ? this.clock.now() - this.cached.fetchedAt : REFRESH_MS;
    // A negative age means that the clock was set back.
    if (age >= 0 && age < REFRESH_MS) return;
    const etag = this.cached?.etag;
    const url = `${this.http.url("skan")}?deviceId=${encodeURIComponent(deviceId)}`;
    const outcome = await this.http.request(url, { method: "GET", headers: etag ? { "If-None-Match": etag } : {} });
    if (outcome.kind === "done") await this.storeDocument(outcome.data, outcome.etag);
    if (outcome.kind === "same" && this.cached) await this.storeDocument(this.cached.document, this.cached.etag);
  }

  private toCountedEvent(key: string, { name, revenue, currency }: Event): CountedEvent {
    this.record.sequence = sequenceOf(key);
    return { name, ...(revenue && { revenue }), ...(currency && { currency }) };
  }

  /** Adds an event to the next evaluation, unless its window has ended. */
  private addWaiting(key: string, event: Event): void {
    const { state } = this.record;
    const counted = this.toCountedEvent(key, event);
    if (windowAt(event.timestampMs - this.firstAt) !== state.window) return;
    this.record.state = { ...state, waiting: [...state.waiting, counted] };
  }

  private evaluate(event?: CountedEvent): Maybe<void> {
    if (!this.isEnabled()) return;
    const now = this.clock.now();
    const { cached } = this;
    const aged: AgedDocument | null = cached && { document: cached.document, ageMs: now - cached.fetchedAt };
    const { state, update } = evaluate(aged, this.record.state, now - this.firstAt, event);
    // `sent` changes only after the platform call succeeded.
    this.record.state = { ...state, sent: this.record.state.sent };
    if (this.isCalling) this.isDueAgain = true;
    else if (update) void this.callPlatform(update);
    return this.vault.write("skan", this.record);
  }

  /** Calls the platform, one call at a time. A failed call is retried with the next event. */
  private async callPlatform(update: ConversionValue): Promise<void> {
    this.isCalling = true;
    this.isDueAgain = false;
    let succeeded = true;
    try {
      await this.options.onConversionValue?.(update);
      this.record.state = { ...this.record.state, sent: update };
      this.record.version = this.cached?.document.version ?? 0;
    } catch (error) {
      succeeded = false;
      notify(this.options.onProblem, { code: "callback_failed", message: String(error) });
    }
    this.isCalling = false;
    await this.vault.write("skan", this.record);
    if (this.isDueAgain && succeeded) await this.evaluate();
  }
}
