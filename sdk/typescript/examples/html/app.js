// The example app. `Tributary` is the global variable that dist/tributary.js defines.

const settings = new URLSearchParams(location.search);
const element = (id) => document.getElementById(id);
const log = (text) => element("log").append(`${text}\n`);

/** Ids of all tracked events, for comparison with the server's event log. */
window.tracked = [];

async function track(name, params) {
  const id = await Tributary.trackEvent(name, params);
  window.tracked.push(id);
  log(`${name}: stored with id ${id}`);
}

// Calls before `configure` are buffered.
void track("page_opened");

Tributary.configure({
  key: settings.get("key"),
  baseUrl: settings.get("baseUrl"),
  ...(settings.get("storage") === "indexeddb" && { storage: Tributary.indexedDbAdapter() }),
  onAttribution: (attribution) => (element("attribution").textContent = JSON.stringify(attribution, null, 2)),
  onProblem: ({ code, message }) => log(`${code}: ${message}`),
});

Tributary.getDeviceId().then((id) => (element("device").textContent = id));
Tributary.getAttribution().then((attribution) => {
  if (attribution) element("attribution").textContent = JSON.stringify(attribution, null, 2);
});

element("view").onclick = () => track("view_content", { page: location.pathname });
element("purchase").onclick = () => track("purchase", { revenue: "9.99", currency: "EUR", sku: "coins_100" });
element("flush").onclick = async () => log((await Tributary.flush()) ? "queue sent" : "queue not sent completely");
element("identify").onclick = () => {
  const agreed = element("consent").checked;
  void Tributary.setConsent({ adUserData: agreed, adPersonalization: agreed });
  void Tributary.setAdvancedMatching(element("email").value, element("phone").value);
  if (element("user").value) void Tributary.setUserId(element("user").value);
  log("identity set");
};
