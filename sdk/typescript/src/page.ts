/** Watches whether the page is active; undefined outside a browser. */
export function watchPage(): ((onChange: (isActive: boolean) => void) => () => void) | undefined {
  if (typeof document === "undefined" || typeof window === "undefined" || !window.addEventListener) return undefined;
  return (onChange) => {
    const changed = ({ type }: { type: string }): void =>
      // Mobile browsers often discard a hidden page without further events.
      onChange(type === "visibilitychange" ? document.visibilityState !== "hidden" : type !== "pagehide");
    // The event bubbles from the document to the window.
    const types = ["pagehide", "pageshow", "online", "visibilitychange"];
    types.forEach((type) => window.addEventListener(type, changed));
    return () => types.forEach((type) => window.removeEventListener(type, changed));
  };
}
