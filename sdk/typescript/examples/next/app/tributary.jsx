"use client";

import { useEffect } from "react";
import { configure } from "tributary-sdk";

/** Starts the SDK in the browser. Rendering on the server only imports the package. A second call is ignored. */
export function Tributary() {
  useEffect(() => {
    void configure({
      key: process.env.NEXT_PUBLIC_TRIBUTARY_KEY ?? "pk_live_…",
      baseUrl: process.env.NEXT_PUBLIC_TRIBUTARY_URL ?? "https://links.example.com",
      // Also tracks navigation in the browser.
      pageViews: true,
    });
  }, []);
  return null;
}
