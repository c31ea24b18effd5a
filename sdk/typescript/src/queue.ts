import { utf8 } from "./sha256.js";
import type { Clock, Maybe } from "./types.js";
import { all, then, type Vault } from "./vault.js";

/** Events that one request may carry; the server takes no more. */
const BATCH_EVENTS = 100;
/** Bytes of them; the server takes 1 MiB. */
const BATCH_BYTES = 500_000;
const START = "q.";
/** No clock is believed beyond it: larger numbers could not be counted up. */
const SEQUENCE_MAX = 8e15;

/** What waits: an event without money, one with it, or who the person is. */
export type Kind = "e" | "r" | "i";

/** Something that waits to be sent. */
export interface Entry {
  /** Its place and kind; see `keyOf`. */
  key: string;
  /** As JSON, exactly as it will be sent each time. */
  json: string;
}

/** `q.<sequence>.<kind>.<id>`: sorted, the keys are the order; the kind is known without reading the value. */
function keyOf(sequence: number, kind: Kind, id: string): string {
  return `${START}${String(sequence).padStart(16, "0")}.${kind}.${id}`;
}

export const kindOf = (key: string): Kind => key.split(".")[2] as Kind;
export const sequenceOf = (key: string): number => Number(key.split(".")[1]);

/**
 * The queue. Every entry is a record of its own: two tabs that add at the same moment cannot overwrite each other, and
 * adding never has to read.
 */
export class Queue {
  /** What this instance added and nobody has taken yet: a page that goes away has no time to read. */
  private readonly own = new Map<string, { json: string; isStored: boolean }>();
  private sequence = 0;
  private size = 0;

  constructor(
    private readonly vault: Vault,
    private readonly clock: Clock,
    private readonly limit: number,
    private readonly onDrop: (count: number) => void,
  ) {}

  /** Finds out where the order stands. */
  load(): Maybe<string[]> {
    return then(this.keys(), (keys) => {
      this.sequence = keys.reduce((last, key) => Math.max(last, sequenceOf(key)), this.sequence);
      return keys;
    });
  }

  /** Adds an entry behind all others, wherever the clock stands. Gives its key when it is stored. */
  add(kind: Kind, id: string, json: string): Maybe<string> {
    const now = Math.min(Math.floor(this.clock.now()) * 1000, SEQUENCE_MAX);
    this.sequence = Math.max(this.sequence + 1, now);
    const key = keyOf(this.sequence, kind, id);
    const added = { json, isStored: false };
    this.own.set(key, added);
    this.size++;
    return then(this.vault.set(key, json), () => {
      added.isStored = true;
      return this.size > this.limit ? then(this.trim(), () => key) : key;
    });
  }

  /** What this instance added behind a key and is still here, without asking the storage. */
  ownSince(after: string): Entry[] {
    const entries = [...this.own].map(([key, { json }]) => ({ key, json }));
    return entries.filter(({ key }) => key > after);
  }

  /** The keys in their order. */
  keys(): Maybe<string[]> {
    return then(this.vault.keys(START), (keys) => {
      this.size = keys.length;
      const there = new Set(keys);
      // Another tab may have sent ours.
      this.own.forEach(({ isStored }, key) => isStored && !there.has(key) && this.own.delete(key));
      return keys;
    });
  }

  /** Drops what is too much: the oldest events without money first, then the oldest. */
  trim(): Maybe<void> {
    return then(this.keys(), (keys) => {
      const excess = keys.length - this.limit;
      if (excess <= 0) return;
      const cheapFirst = keys.filter((key) => kindOf(key) === "e").concat(keys.filter((key) => kindOf(key) !== "e"));
      const dropped = cheapFirst.slice(0, excess);
      this.onDrop(dropped.length);
      return this.remove(dropped);
    });
  }

  /** What goes out next: events up to the limits, or the one entry that says who the person is. */
  async head(max: number): Promise<Entry[]> {
    await this.trim();
    const keys = await this.keys();
    const batch: Entry[] = [];
    let bytes = 0;
    for (const key of keys) {
      const isIdentity = kindOf(key) === "i";
      if (batch.length >= Math.min(max, BATCH_EVENTS) || (isIdentity && batch.length > 0)) break;
      const json = await this.vault.get(key);
      // Another tab has sent it since.
      if (json === null) continue;
      bytes += utf8(json).length + 1;
      if (bytes > BATCH_BYTES && batch.length > 0) break;
      batch.push({ key, json });
      if (isIdentity) break;
    }
    return batch;
  }

  remove(keys: string[]): Maybe<void> {
    this.size = Math.max(0, this.size - keys.length);
    keys.forEach((key) => this.own.delete(key));
    return all(
      keys.map((key) => this.vault.remove(key)),
      () => undefined,
    );
  }

  /** Forgets everything. */
  clear(): Maybe<void> {
    return then(this.keys(), (keys) => this.remove(keys));
  }
}
