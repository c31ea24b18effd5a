/** Watches whether the page is active; undefined outside a browser. */
export function watchPage(): ((onChange: (isActive: boolean) => void) => () => void) | undefined {
  if (typeof document === "undefined" || typeof window === "undefined" || !window.addEventListener) return undefined;
  return (onChange) => {
    const left = (): void => onChange(false);
    const back = (): void => onChange(true);
    // Mobile browsers often discard a hidden page without further events.
    const turned = (): void => onChange(document.visibilityState !== "hidden");
    window.addEventListener("pagehide", left);
    window.addEventListener("pageshow", back);
    window.addEventListener("online", back);
    document.addEventListener("visibilitychange", turned);
    return () => {
      window.removeEventListener("pagehide", left);
      window.removeEventListener("pageshow", back);
      window.removeEventListener("online", back);
      document.removeEventListener("visibilitychange", turned);
    };
  };
}
