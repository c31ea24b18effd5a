import type { Params } from "./types.js";

/** Returns the path, with that of a hash router; without the query, for privacy. */
const currentPath = (): string => location.pathname + (/^#!?\/[^?]*/.exec(location.hash)?.[0] ?? "");

/** Calls `onView` on load and whenever the path changes. Returns a function that ends it. */
export function watchPageViews(onView: (params: Params) => void): () => void {
  if (typeof document === "undefined" || typeof history === "undefined") return () => undefined;
  let last: string | undefined;
  const view = (more?: Params): void => {
    const path = currentPath();
    if (path === last) return;
    last = path;
    onView({ path, title: document.title, ...more });
  };
  // Routers set the title after the path.
  const changed = (): void => void setTimeout(view, 0);
  const originals = (["pushState", "replaceState"] as const).map((name) => {
    const original = history[name];
    history[name] = (...args) => {
      original.apply(history, args);
      changed();
    };
    return () => (history[name] = original);
  });
  addEventListener("popstate", changed);
  const referrer = /^https?:\/\/([^/]+)/.exec(document.referrer)?.[1];
  view(referrer && referrer !== location.host ? { referrer } : {});
  return () => {
    originals.forEach((restore) => restore());
    removeEventListener("popstate", changed);
  };
}
