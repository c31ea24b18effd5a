import { memoryStorage } from "../../src/storage";
import type { Storage } from "../../src/types";

/** A storage that answers in a later turn of the event loop. */
export function slowStorage(): Storage {
  const inner = memoryStorage();
  const later = <T>(run: () => T): Promise<T> => new Promise((done) => setImmediate(() => done(run())));
  return {
    get: (key) => later(() => inner.get(key) as string | null),
    set: (key, value) => later(() => void inner.set(key, value)),
    remove: (key) => later(() => void inner.remove(key)),
    keys: () => later(() => inner.keys() as string[]),
  };
}
