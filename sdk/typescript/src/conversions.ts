import { evaluate, NEW_STATE, windowAt, type Document, type Happened, type Held, type State } from "./evaluate.js";
import type { Event } from "./event.js";
import type { Http } from "./http.js";
import { kindOf, sequenceOf } from "./queue.js";
import type { Clock, ConversionValue, Maybe, Options } from "./types.js";
import { all, then, type Vault } from "./vault.js";

/** The configuration is asked for at most this often. */
const REFRESH_MS = 3_600_000;
/** What a server says that never had a configuration. */
const NONE: Document = { version: 0, enabled: false, currency: "USD", windows: [] };

interface Record {
  state: State;
  /** The place in the queue up to which events were counted: those behind it were not, if the app was killed. */
  sequence: number;
  /** The version of the document that the last call was made by. */
  version: number;
}

interface Kept {
  document: Document;
  etag: string | null;
  fetchedAt: number;
}

/** Counts events and tells the platform what they are worth. */
export class Conversions {
  private record: Record = { state: NEW_STATE, sequence: 0, version: 0 };
  private kept: Kept | null = null;
  private firstAt = 0;
  private isTelling = false;
  private isDueAgain = false;

  constructor(
    private readonly vault: Vault,
    private readonly http: Http,
    private readonly clock: Clock,
    private readonly options: Options,
    private readonly isEnabled: () => boolean,
  ) {}

  /** Reads what was kept, and counts what is queued and was not counted. */
  load(keys: string[], firstAt: number): Maybe<void> {
    this.firstAt = firstAt;
    return all<object | null, void>([this.vault.read("skan"), this.vault.read("skanDocument")], ([record, kept]) => {
      this.record = { ...this.record, ...record };
      this.kept = kept as Kept | null;
      const missed = keys.filter((key) => kindOf(key) !== "i" && sequenceOf(key) > this.record.sequence);
      return all(
        missed.map((key) => this.vault.read<Event>(key)),
        (events) => {
          events.forEach((event, index) => event && this.take(missed[index]!, event));
          return this.evaluate();
        },
      );
    });
  }

  /** Counts an event that was queued under this key. */
  count(key: string, event: Event): Maybe<void> {
    return this.evaluate(this.happened(key, event));
  }

  /** Takes in a configuration; null: there never was one. */
  hear(document: unknown, etag: string | null): Maybe<void> {
    this.kept = { document: (document as Document | null) ?? NONE, etag, fetchedAt: this.clock.now() };
    return then(this.vault.write("skanDocument", this.kept), () => this.evaluate());
  }

  /** Asks for the configuration where that is due. */
  async refresh(deviceId: string): Promise<void> {
    const age = this.kept ? this.clock.now() - this.kept.fetchedAt : REFRESH_MS;
    // A negative age: the clock was put back.
    if (age >= 0 && age < REFRESH_MS) return;
    const outcome = await this.http.get("skan", `deviceId=${encodeURIComponent(deviceId)}`, this.kept?.etag ?? null);
    if (outcome.kind === "done") await this.hear(outcome.data, outcome.etag);
    if (outcome.kind === "same" && this.kept) await this.hear(this.kept.document, this.kept.etag);
  }

  private happened(key: string, { name, revenue, currency }: Event): Happened {
    this.record.sequence = sequenceOf(key);
    return { name, ...(revenue && { revenue }), ...(currency && { currency }) };
  }

  /** Lets an event wait for the next evaluation, unless its window is over. */
  private take(key: string, event: Event): void {
    const { state } = this.record;
    const happened = this.happened(key, event);
    if (windowAt(event.timestampMs - this.firstAt) !== state.window) return;
    this.record.state = { ...state, waiting: [...state.waiting, happened] };
  }

  private evaluate(event?: Happened): Maybe<void> {
    if (!this.isEnabled()) return;
    const now = this.clock.now();
    const held: Held | null = this.kept && { document: this.kept.document, ageMs: now - this.kept.fetchedAt };
    const { state, update } = evaluate(held, this.record.state, now - this.firstAt, event);
    // Not sent before the platform was told.
    this.record.state = { ...state, sent: this.record.state.sent };
    if (this.isTelling) this.isDueAgain = true;
    else if (update) void this.tell(update);
    return this.vault.write("skan", this.record);
  }

  /** Tells the platform, one call at a time. One that failed is not kept as sent: the next event tries again. */
  private async tell(update: ConversionValue): Promise<void> {
    this.isTelling = true;
    this.isDueAgain = false;
    let isTold = true;
    try {
      await this.options.onConversionValue?.(update);
      this.record.state = { ...this.record.state, sent: update };
      this.record.version = this.kept?.document.version ?? 0;
    } catch (error) {
      isTold = false;
      this.options.onProblem?.({ code: "callback_failed", message: String(error) });
    }
    this.isTelling = false;
    await this.vault.write("skan", this.record);
    if (this.isDueAgain && isTold) await this.evaluate();
  }
}
