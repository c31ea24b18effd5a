import type { Storage } from "./types.js";

/** Keeps nothing beyond this process: the last resort, and for tests. */
export function memoryStorage(): Storage {
  const kept = new Map<string, string>();
  return {
    get: (key) => kept.get(key) ?? null,
    set: (key, value) => void kept.set(key, value),
    remove: (key) => void kept.delete(key),
    keys: () => [...kept.keys()],
  };
}

/** The browser's `localStorage`. It answers at once, so that an event is on disk before `trackEvent` returns. */
export function localStorageAdapter(): Storage {
  const store = localStorage;
  return {
    shared: true,
    get: (key) => store.getItem(key),
    set: (key, value) => store.setItem(key, value),
    remove: (key) => store.removeItem(key),
    keys: () => {
      const keys: string[] = [];
      for (let index = 0; index < store.length; index++) {
        const key = store.key(index);
        if (key !== null) keys.push(key);
      }
      return keys;
    },
  };
}

const TABLE = "records";

/** The browser's IndexedDB: more room than `localStorage`, and there in workers as well. */
export function indexedDbAdapter(name = "tributary"): Storage {
  let opened: Promise<IDBDatabase> | undefined;
  const open = (): Promise<IDBDatabase> =>
    (opened ??= new Promise<IDBDatabase>((resolve, reject) => {
      const request = indexedDB.open(name, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(TABLE);
      request.onsuccess = () => {
        // Browsers close a database that they clear away, or that is deleted elsewhere: it is opened anew.
        request.result.onclose = () => (opened = undefined);
        request.result.onversionchange = () => {
          request.result.close();
          opened = undefined;
        };
        resolve(request.result);
      };
      request.onerror = () => {
        // The next call may have more luck.
        opened = undefined;
        reject(request.error);
      };
    }));
  const run = async <T>(mode: IDBTransactionMode, ask: (table: IDBObjectStore) => IDBRequest): Promise<T> => {
    const transaction = (await open()).transaction(TABLE, mode);
    const request = ask(transaction.objectStore(TABLE));
    return new Promise<T>((resolve, reject) => {
      // Not when the request succeeded, but when it is on disk.
      transaction.oncomplete = () => resolve(request.result as T);
      transaction.onerror = transaction.onabort = () => reject(transaction.error);
    });
  };
  return {
    shared: true,
    get: async (key) => (await run<string | undefined>("readonly", (table) => table.get(key))) ?? null,
    set: async (key, value) => void (await run("readwrite", (table) => table.put(value, key))),
    remove: async (key) => void (await run("readwrite", (table) => table.delete(key))),
    keys: () => run<string[]>("readonly", (table) => table.getAllKeys()),
  };
}

/** As much of React Native's AsyncStorage as is used. */
export interface AsyncStorageLike {
  getItem(key: string): Promise<string | null>;
  setItem(key: string, value: string): Promise<void>;
  removeItem(key: string): Promise<void>;
  getAllKeys(): Promise<readonly string[]>;
}

/** React Native's AsyncStorage. The app hands it over: this package depends on nothing. */
export function asyncStorageAdapter(store: AsyncStorageLike): Storage {
  return {
    get: (key) => store.getItem(key),
    set: (key, value) => store.setItem(key, value),
    remove: (key) => store.removeItem(key),
    keys: async () => [...(await store.getAllKeys())],
  };
}

/** The best that this place has. */
export function defaultStorage(): Storage {
  try {
    // Reading the property throws where the person forbids storage; writing where there is no room for any.
    const probe = "tributary.probe";
    localStorage.setItem(probe, "1");
    localStorage.removeItem(probe);
    return localStorageAdapter();
  } catch {
    return typeof indexedDB === "undefined" ? memoryStorage() : indexedDbAdapter();
  }
}
