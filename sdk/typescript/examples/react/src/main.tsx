import { createRoot } from "react-dom/client";
import { setConsent, trackEvent } from "tributary-sdk";
import { useAttribution } from "./tributary";

function Shop() {
  const attribution = useAttribution();
  const buy = () => trackEvent("purchase", { revenue: "9.99", currency: "EUR", sku: "coins_100" });
  const decide = (agreed: boolean) => setConsent({ adUserData: agreed, adPersonalization: agreed });
  return (
    <main>
      <h1>Coins</h1>
      <p>{attribution ? `You came from ${attribution.network}.` : "…"}</p>
      <label>
        <input type="checkbox" onChange={(change) => void decide(change.target.checked)} /> Use my data for advertising
      </label>
      <button onClick={() => void buy()}>Buy 100 coins</button>
    </main>
  );
}

createRoot(document.getElementById("root")!).render(<Shop />);
