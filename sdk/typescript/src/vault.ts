import type { Maybe, Storage } from "./types.js";

/** Whether a value comes later. Any promise will do, not only this engine's own. */
function isLater<T>(value: Maybe<T>): value is Promise<T> {
  return typeof (value as { then?: unknown } | null)?.then === "function";
}

/** Goes on with a value: at once if it is there, else when it is. This is what keeps a synchronous storage so. */
export function then<T, R>(value: Maybe<T>, next: (value: T) => Maybe<R>): Maybe<R> {
  return isLater(value) ? value.then(next) : next(value);
}

/** Goes on when all are there. */
export function all<T, R>(values: Maybe<T>[], next: (values: T[]) => Maybe<R>): Maybe<R> {
  return values.some(isLater) ? Promise.all(values).then(next) : next(values as T[]);
}

/** What begins every key of ours. */
const PREFIX = "tributary.";

/**
 * The storage as the SDK uses it. What cannot be written (no room, storage forbidden) is kept in memory: it survives
 * no restart, and until then nothing is lost.
 */
export class Vault {
  private readonly unwritten = new Map<string, string>();
  readonly shared: boolean;
  /** Whether something could not be read: then what seems to be missing may be there. */
  hasFailed = false;

  constructor(
    private readonly storage: Storage,
    private readonly onFailure: (error: unknown) => void,
  ) {
    this.shared = storage.shared === true;
  }

  get(key: string): Maybe<string | null> {
    const kept = this.unwritten.get(key);
    return kept !== undefined ? kept : this.attempt(() => this.storage.get(PREFIX + key), null);
  }

  /** A record; nothing where it is missing or unreadable. */
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

  /** The keys that begin so, in order. */
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
