import type { Maybe, Storage } from "./types.js";

/** Returns whether a value is a promise, including polyfilled ones. */
function isLater<T>(value: Maybe<T>): value is Promise<T> {
  return typeof (value as { then?: unknown } | null)?.then === "function";
}

/** Continues with a value, synchronously unless it is a promise. This keeps a synchronous storage synchronous. */
export function then<T, R>(value: Maybe<T>, next: (value: T) => Maybe<R>): Maybe<R> {
  return isLater(value) ? value.then(next) : next(value);
}

/** Continues with all values, synchronously unless one is a promise. */
export function all<T, R>(values: Maybe<T>[], next: (values: T[]) => Maybe<R>): Maybe<R> {
  return values.some(isLater) ? Promise.all(values).then(next) : next(values as T[]);
}

/** Prefix of all storage keys. */
const PREFIX = "tributary.";

/**
 * The storage with a memory fallback. Values that cannot be written (quota exceeded, storage disabled) stay in memory
 * until the app restarts.
 */
export class Vault {
  private readonly unwritten = new Map<string, string>();
  readonly shared: boolean;
  /** Whether a read failed. If so, a value that seems to be missing may exist after all. */
  hasFailed = false;

  constructor(
    private readonly storage: Storage,
    private readonly onFailure: (error: unknown) => void,
  ) {
    this.shared = storage.shared === true;
  }

  get(key: string): Maybe<string | null> {
    const fallback = this.unwritten.get(key);
    return fallback !== undefined ? fallback : this.attempt(() => this.storage.get(PREFIX + key), null);
  }

  /** Reads a record; null if it is missing or unreadable. */
  read<T>(key: string): Maybe<T | null> {
    return then(this.get(key), (text) => {
      try {
        return text === null ? null : (JSON.parse(text) as T);
      } catch {
        return null;
      }
    });
  }

  set(key: string, value: string): Maybe<void> {
    const failed = (error: unknown): void => {
      this.unwritten.set(key, value);
      this.onFailure(error);
    };
    const done = (): void => void this.unwritten.delete(key);
    try {
      const written = this.storage.set(PREFIX + key, value);
      return isLater(written) ? written.then(done, failed) : done();
    } catch (error) {
      return failed(error);
    }
  }

  write(key: string, record: unknown): Maybe<void> {
    return this.set(key, JSON.stringify(record));
  }

  remove(key: string): Maybe<void> {
    this.unwritten.delete(key);
    return this.attempt(() => this.storage.remove(PREFIX + key), undefined);
  }

  /** Returns the keys with this prefix in order. */
  keys(start: string): Maybe<string[]> {
    return then(
      this.attempt(() => this.storage.keys(), []),
      (stored) => {
        const ours = stored.filter((key) => key.startsWith(PREFIX + start)).map((key) => key.slice(PREFIX.length));
        const more = [...this.unwritten.keys()].filter((key) => key.startsWith(start) && !ours.includes(key));
        return ours.concat(more).sort();
      },
    );
  }

  private attempt<T>(run: () => Maybe<T>, otherwise: T): Maybe<T> {
    const failed = (error: unknown): T => {
      this.hasFailed = true;
      this.onFailure(error);
      return otherwise;
    };
    try {
      const value = run();
      return isLater(value) ? value.catch(failed) : value;
    } catch (error) {
      return failed(error);
    }
  }
}
