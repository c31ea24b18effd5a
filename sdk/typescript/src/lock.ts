import type { Clock, Lock } from "./types.js";
import type { Vault } from "./vault.js";

/** How long a lease holds unless it is renewed: longer than a request may take. */
const LEASE_MS = 30_000;
/** How long somebody who takes a free lease waits to see whether another took it at the same time. */
const SETTLE_MS = 50;

interface LockManagerLike {
  request(name: string, options: { ifAvailable: true }, run: (lock: unknown) => Promise<boolean>): Promise<boolean>;
}

/** The browser's own locks: exact, and freed when a tab dies. */
export function browserLock(): Lock | undefined {
  const locks = typeof navigator === "undefined" ? undefined : (navigator as { locks?: LockManagerLike }).locks;
  if (!locks) return undefined;
  return async (name, run) => {
    let isRunning = false;
    try {
      return await locks.request(name, { ifAvailable: true }, async (lock) => {
        isRunning = lock !== null;
        if (isRunning) await run();
        return isRunning;
      });
    } catch (error) {
      if (isRunning) throw error;
      // Locks are forbidden here, as in a sandboxed frame. The ids of the events make it harmless to go without.
      await run();
      return true;
    }
  };
}

/**
 * A lease in the storage, for browsers without locks. Two tabs may in rare cases both hold it; the ids of the events
 * make that harmless.
 */
export function leaseLock(vault: Vault, clock: Clock, owner: string): Lock {
  const KEY = "lease";
  const holder = async (): Promise<string | null> => {
    const lease = await vault.read<{ owner: string; until: number }>(KEY);
    const left = lease ? lease.until - clock.now() : 0;
    // A lease that ends later than any lease can was made before the clock was put back.
    return lease && left > 0 && left <= LEASE_MS ? lease.owner : null;
  };
  const renew = (): unknown => vault.write(KEY, { owner, until: clock.now() + LEASE_MS });
  return async (_name, run) => {
    const before = await holder();
    if (before !== null && before !== owner) return false;
    await renew();
    await new Promise<void>((resolve) => clock.setTimeout(resolve, SETTLE_MS));
    if ((await holder()) !== owner) return false;
    let timer: unknown;
    const keep = (): void => {
      timer = clock.setTimeout(() => {
        void renew();
        keep();
      }, LEASE_MS / 2);
    };
    keep();
    try {
      await run();
    } finally {
      clock.clearTimeout(timer);
      if ((await holder()) === owner) await vault.remove(KEY);
    }
    return true;
  };
}

/** For a storage that nobody else uses. */
export const noLock: Lock = async (_name, run) => {
  await run();
  return true;
};
