import { systemClock } from "./clock.js";
import type { Lock, Storage } from "./types.js";
import { uuid } from "./uuid.js";
import { Vault } from "./vault.js";

/** Lease duration: longer than a request may take. */
const LEASE_MS = 30_000;
/** Wait after taking a free lease, to detect another tab that took it at the same time. */
const SETTLE_MS = 50;

interface LockManagerLike {
  request(name: string, options: { ifAvailable: true }, run: (lock: unknown) => Promise<boolean>): Promise<boolean>;
}

/** The Web Locks API: exclusive, and released when a tab closes or crashes. */
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
      // Locks are not available, for example in a sandboxed frame. Event ids make concurrent sending harmless.
      await run();
      return true;
    }
  };
}

/**
 * A lease of 30 seconds in the storage, for browsers without Web Locks. Pass it to `configure` as `lock`. In rare
 * cases, two tabs hold the lease at once; event ids make that harmless.
 */
export function leaseLock(storage: Storage, clock = systemClock): Lock {
  const KEY = "lease";
  const owner = uuid();
  const vault = new Vault(storage, () => undefined);
  const holder = async (): Promise<string | null> => {
    const lease = await vault.read<{ owner: string; until: number }>(KEY);
    const left = lease ? lease.until - clock.now() : 0;
    // A lease that ends too far in the future was taken before the clock was set back.
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

/** No locking: the storage is not shared, or the browser has no locks. Event ids make concurrent sending harmless. */
export const noLock: Lock = async (_name, run) => {
  await run();
  return true;
};
