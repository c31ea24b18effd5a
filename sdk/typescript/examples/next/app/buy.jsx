"use client";

import { trackEvent } from "tributary-sdk";

export function Buy() {
  const buy = () => trackEvent("purchase", { revenue: "9.99", currency: "EUR", sku: "coins_100" });
  return <button onClick={() => void buy()}>Buy 100 coins</button>;
}
