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
  const [code, why]: [Problem["code"], string] = (await isReachable(url))
    ? ["cors_refused", "refuses this page (CORS). Check baseUrl and its proxy."]
    : // Extensions block by path; the rest of the server is reachable then.
      (await isReachable(`${baseUrl}/readyz`))
      ? ["request_blocked", "is blocked by an extension or filter."]
      : ["server_unreachable", "is unreachable. Check baseUrl."];
  return navigator.onLine ? { code, message: `${url} ${why}` } : undefined;
}
