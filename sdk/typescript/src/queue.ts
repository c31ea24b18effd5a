import { byteLength } from "./event.js";
import type { Clock, Maybe } from "./types.js";
import { all, then, type Vault } from "./vault.js";

/** Maximum number of events per request (the server's limit). */
const BATCH_EVENTS = 100;
/** Maximum bytes per request; the server's limit is 1 MiB. */
const BATCH_BYTES = 500_000;
const START = "q.";
/** Upper bound for the clock, so that sequence numbers stay safe integers. */
const SEQUENCE_MAX = 8e15;

/** Kind of entry: event without revenue, event with revenue, or identity. */
export type Kind = "e" | "r" | "i";

/** An entry in the queue. */
export interface Entry {
  /** Sequence, kind and id; see `keyOf`. */
  key: string;
  /** JSON, identical in every attempt. */
  json: string;
}

/** The device id of the entries up to a sequence number that were queued before `reset`. */
export interface PastDevice {
  deviceId: string;
  until: number;
}

/** `q.<sequence>.<kind>.<id>`: keys sort in queue order, and the kind is known without reading the value. */
function keyOf(sequence: number, kind: Kind, id: string): string {
  return `${START}${sequenceText(sequence)}.${kind}.${id}`;
}

/** Returns a sequence number as text that sorts like the number. */
export const sequenceText = (sequence: number): string => String(sequence).padStart(16, "0");

export const kindOf = (key: string): Kind => key.split(".")[2] as Kind;
export const sequenceOf = (key: string): number => Number(key.split(".")[1]);

/**
 * The persistent queue. Each entry is a separate record, so tabs cannot overwrite each other's entries, and adding
 * needs no read.
 */
export class Queue {
  /** This instance's unsent entries, in memory because a closing page has no time to read the storage. */
  private readonly own = new Map<string, { json: string; isStored: boolean }>();
  /** The last sequence number. */
  sequence = 0;
  private size = 0;
  /** Earlier device ids, oldest first. */
  past: PastDevice[] = [];

  constructor(
    private readonly vault: Vault,
    private readonly clock: Clock,
    private readonly limit: number,
    private readonly onDrop: (count: number) => void,
  ) {}

  /** Loads the keys and the last sequence number. */
  load(): Maybe<string[]> {
    return then(this.keys(), (keys) => {
      this.sequence = keys.reduce((last, key) => Math.max(last, sequenceOf(key)), this.sequence);
      return keys;
    });
  }

  /** Reads the earlier device ids. */
  loadPast(): Maybe<void> {
    return then(this.vault.read<PastDevice[]>("past"), (past) => void (this.past = past ?? []));
  }

  /** Reserves the next sequence number. It is higher than all others, even if the clock was set back. */
  next(): number {
    const now = Math.min(Math.floor(this.clock.now()) * 1000, SEQUENCE_MAX);
    return (this.sequence = Math.max(this.sequence + 1, now));
  }

  /**
   * Appends an entry after all others. Returns its key once it is stored; null if the JSON is null. The JSON may be a
   * promise; the order is that of the calls.
   */
  add(kind: Kind, id: string, made: Maybe<string | null>): Maybe<string | null> {
    const key = keyOf(this.next(), kind, id);
    return then(made, (json) => {
      if (json === null) return null;
      const added = { json, isStored: false };
      this.own.set(key, added);
      this.size++;
      return then(this.vault.set(key, json), () => {
        added.isStored = true;
        return this.size > this.limit ? then(this.trim(), () => key) : key;
      });
    });
  }

  /** Returns the earlier device id that an entry belongs to; undefined for the current device. */
  pastDevice(key: string): string | undefined {
    return this.past.find(({ until }) => sequenceOf(key) <= until)?.deviceId;
  }

  /** Returns this instance's entries of the current device after a key, without reading the storage. */
  ownSince(after: string): Entry[] {
    const entries = [...this.own].map(([key, { json }]) => ({ key, json }));
    return entries.filter(({ key }) => key > after && !this.pastDevice(key));
  }

  /** Returns all keys in order. */
  keys(): Maybe<string[]> {
    return then(this.vault.keys(START), (keys) => {
      this.size = keys.length;
      const there = new Set(keys);
      // Another tab may have sent this instance's entries.
      this.own.forEach(({ isStored }, key) => isStored && !there.has(key) && this.own.delete(key));
      return keys;
    });
  }

  /** Drops entries over the limit: first the oldest events without revenue, then the oldest other entries. */
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

  /** Returns the next batch: events of one device up to the limits, or a single identity entry. */
  async head(max: number): Promise<Entry[]> {
    await this.trim();
    const keys = await this.keys();
    // Read after the keys: another tab may have made a new device, to which the last entries belong.
    if (this.vault.shared) await this.loadPast();
    const batch: Entry[] = [];
    let bytes = 0;
    for (const key of keys) {
      const isIdentity = kindOf(key) === "i";
      if (batch.length >= Math.min(max, BATCH_EVENTS) || (isIdentity && batch.length > 0)) break;
      if (batch.length > 0 && this.pastDevice(key) !== this.pastDevice(batch[0]!.key)) break;
      const json = await this.vault.get(key);
      // Another tab has sent this entry in the meantime.
      if (json === null) continue;
      bytes += byteLength(json) + 1;
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

  /** Removes all entries that were added before this call. */
  clear(): Maybe<void> {
    const until = this.next();
    const isOlder = (key: string): boolean => sequenceOf(key) < until || !this.own.has(key);
    return then(this.keys(), (keys) => this.remove(keys.filter(isOlder)));
  }
}
