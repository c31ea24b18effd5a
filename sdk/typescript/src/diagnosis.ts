import type { Problem } from "./types.js";

/**
 * Finds out why a browser got no response. The browser does not tell scripts, but requests without CORS succeed if the
 * server answers at all. Returns undefined if the device is offline, and outside of a browser.
 */
export async function diagnose(url: string, baseUrl: string): Promise<Problem | undefined> {
  if (typeof document === "undefined" || !navigator.onLine) return undefined;
  const isReachable = (target: string): Promise<boolean> =>
    fetch(target, { mode: "no-cors" }).then(
      () => true,
      () => false,
    );
  if (await isReachable(url)) {
    const message = `${baseUrl} does not allow requests from this page (CORS). Check baseUrl and its proxy.`;
    return { code: "cors_refused", message };
  }
  // Extensions block by path; the rest of the server is reachable then.
  if (await isReachable(`${baseUrl}/readyz`)) {
    return { code: "request_blocked", message: `A browser extension or filter blocks ${url}.` };
  }
  const message = `${baseUrl} cannot be reached. Check baseUrl; a browser extension may block it.`;
  return navigator.onLine ? { code: "server_unreachable", message } : undefined;
}
