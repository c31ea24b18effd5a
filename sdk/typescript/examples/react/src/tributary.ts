import { configure, getAttribution, type Attribution } from "tributary-sdk";
import { useEffect, useState } from "react";

const settings = new URLSearchParams(location.search);

// Outside of components, so that it runs once. Calls before it would be buffered.
configure({
  key: settings.get("key") ?? "pk_live_…",
  baseUrl: settings.get("baseUrl") ?? "https://links.example.com",
  pageViews: true,
  onProblem: ({ code, message }) => console.warn(`Tributary: ${code}: ${message}`),
});

/** Returns the attribution of the visit; null until it is known. */
export function useAttribution(): Attribution | null {
  const [attribution, setAttribution] = useState<Attribution | null>(null);
  useEffect(() => {
    let isMounted = true;
    void getAttribution().then((found) => isMounted && setAttribution(found));
    return () => {
      isMounted = false;
    };
  }, []);
  return attribution;
}
