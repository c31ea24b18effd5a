import type { Storage } from "./types.js";

/** In-memory storage without persistence: the last fallback, also used in tests. */
export function memoryStorage(): Storage {
  const values = new Map<string, string>();
  return {
    get: (key) => values.get(key) ?? null,
    set: (key, value) => void values.set(key, value),
    remove: (key) => void values.delete(key),
    keys: () => [...values.keys()],
  };
}

/** The browser's `localStorage`. It is synchronous, so an event is stored before `trackEvent` returns. */
export function localStorageAdapter(): Storage {
  const store = localStorage;
  return {
    shared: true,
    get: (key) => store.getItem(key),
    set: (key, value) => store.setItem(key, value),
    remove: (key) => store.removeItem(key),
    keys: () => Object.keys(store),
  };
}

const TABLE = "records";

/** The browser's IndexedDB: more space than `localStorage`, and available in workers. */
export function indexedDbAdapter(name = "tributary"): Storage {
  let opened: Promise<IDBDatabase> | undefined;
  const open = (): Promise<IDBDatabase> =>
    (opened ??= new Promise<IDBDatabase>((resolve, reject) => {
      const request = indexedDB.open(name, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(TABLE);
      request.onsuccess = () => {
        // Browsers close a database that was cleared or deleted elsewhere. The next call reopens it.
        request.result.onclose = () => (opened = undefined);
        request.result.onversionchange = () => {
          request.result.close();
          opened = undefined;
        };
        resolve(request.result);
      };
      request.onerror = () => {
        // The next call tries again.
        opened = undefined;
        reject(request.error);
      };
    }));
  const run = async <T>(mode: IDBTransactionMode, ask: (table: IDBObjectStore) => IDBRequest): Promise<T> => {
    const transaction = (await open()).transaction(TABLE, mode);
    const request = ask(transaction.objectStore(TABLE));
    return new Promise<T>((resolve, reject) => {
      // Resolve when the transaction is complete, not already when the request has succeeded.
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

/** The parts of React Native's AsyncStorage that the SDK uses. */
export interface AsyncStorageLike {
  getItem(key: string): Promise<string | null>;
  setItem(key: string, value: string): Promise<void>;
  removeItem(key: string): Promise<void>;
  getAllKeys(): Promise<readonly string[]>;
}

/** Wraps React Native's AsyncStorage. The app passes it in, so that this package has no dependency. */
export function asyncStorageAdapter(store: AsyncStorageLike): Storage {
  return {
    get: (key) => store.getItem(key),
    set: (key, value) => store.setItem(key, value),
    remove: (key) => store.removeItem(key),
    keys: async () => [...(await store.getAllKeys())],
  };
}

/** Returns `localStorage`, or memory without it. */
export function defaultStorage(): Storage {
  try {
    // Reading `localStorage` throws if storage is disabled; writing throws if the quota is exceeded.
    const probe = "tributary.probe";
    localStorage.setItem(probe, "1");
    localStorage.removeItem(probe);
    return localStorageAdapter();
  } catch {
    return memoryStorage();
  }
}
