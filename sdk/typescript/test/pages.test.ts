// Consent, page views and diagnosis in Chromium, with a real server and an ad network.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { chromium, type Browser, type Page } from "playwright-core";
import { Server, until, type App } from "./support/server";
import { AdNetwork, BLANK, browserPath, Proxy, servePage } from "./support/web";

/** The server treats headless browsers as bots. */
const USER_AGENT = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/141.0.0.0 Safari/537.36";

let network: AdNetwork;
let server: Server;
let proxy: Proxy;
let site: { url: string; stop(): void };
let browser: Browser;

before(async () => {
  network = new AdNetwork();
  await network.start();
  server = await Server.start({
    TRIBUTARY_NETWORKS__ALLOW_PRIVATE_ADDRESSES: "true",
    TRIBUTARY_NETWORKS__NETWORK_A__BASE_URL: network.url,
  });
  proxy = new Proxy(server.url);
  await proxy.start();
  site = await servePage();
  browser = await chromium.launch({ executablePath: browserPath(), args: ["--no-sandbox", "--disable-gpu"] });
});
after(async () => {
  await browser?.close();
  site?.stop();
  proxy?.stop();
  await server?.stop();
  network?.stop();
});

/** Opens the blank page in a separate browser profile. */
async function open(url = site.url + BLANK): Promise<Page> {
  const context = await browser.newContext({ userAgent: USER_AGENT });
  const page = await context.newPage();
  await page.goto(url);
  return page;
}

/** Starts the SDK in a page, and collects its problems. */
const configure = (page: Page, key: string, more = "", baseUrl = proxy.url): Promise<unknown> =>
  page.evaluate(
    `window.problems = []; void Tributary.configure({ key: "${key}", baseUrl: "${baseUrl}", flushDelayMs: 0,
       onProblem: (problem) => window.problems.push(problem), ${more} })`,
  );

const names = async (app: App): Promise<string[]> => (await server.events(app)).map(({ name }) => name);

test("a purchase that follows a refusal does not reach an ad network while configure is slow", async () => {
  // Several devices with one address would be held for review.
  const app = await server.app({ attribution: { fraud: "flag" } });
  await server.rest("PATCH", `/apps/${app.id}/integrations/network_a`, {
    enabled: true,
    settings: { pixelId: "1234567890" },
    credentials: { accessToken: "EAAB0123456789abcdef" },
  });
  const slug = `shoes-${Date.now()}`;
  const more = { type: "web_funnel", network: "network_a", destinationUrl: "https://shop.example.com/" };
  const path = `/apps/${app.id}/links`;
  const link = await server.rest<{ data: { url: string } }>("POST", path, { name: "Shoes", slug, ...more });
  /** Clicks the link and opens the page. Links lead to https pages only, so the test follows it by itself. */
  const openFromAd = async (): Promise<Page> => {
    const headers = { "User-Agent": USER_AGENT };
    const click = await fetch(`${link.data.url}?fbclid=IwAR123`, { redirect: "manual", headers });
    return open(site.url + BLANK + new URL(click.headers.get("location")!).search);
  };
  const buy = (eventId: string, consent: boolean): string =>
    `void Tributary.setAdvancedMatching("joe@example.com");
     void Tributary.setConsent({ adUserData: ${consent} });
     void Tributary.trackEvent("purchase", { revenue: 5, currency: "EUR" }, { eventId: "${eventId}" });`;
  proxy.configureDelayMs = 400;
  for (let round = 0; round < 3; round++) {
    const page = await openFromAd();
    const requested = page.waitForRequest(/configure/);
    await configure(page, app.key);
    await requested;
    await page.evaluate(buy(`refused-${round}`, false));
    await until(async () => (await server.events(app)).some(({ eventId }) => eventId === `refused-${round}`), "event");
    await page.context().close();
  }
  proxy.configureDelayMs = 0;
  const page = await openFromAd();
  await configure(page, app.key, "consent: { adUserData: true }");
  await page.evaluate(buy("granted", true));
  await until(() => network.received.length > 0, "the delivery of the granted event");
  const received = network.received.flatMap((body) => (JSON.parse(body) as { data: { event_name: string }[] }).data);
  assert.deepEqual(
    received.map(({ event_name }) => event_name),
    ["Purchase"],
  );
  const refused = (await server.events(app)).filter(({ eventId }) => eventId.startsWith("refused"));
  assert.deepEqual(
    refused.map(({ deliveries }) => deliveries!.map(({ status, reason }) => [status, reason])),
    Array(3).fill([["skipped", "consent"]]),
  );
  await page.context().close();
});

test("pageViews tracks the load and every change of the path, without the query", async () => {
  const app = await server.app();
  const page = await open(`${site.url}${BLANK}?secret=1&ar_click_id=click-1`);
  await configure(page, app.key, "pageViews: true");
  const steps = [
    'history.pushState({}, "", "/cart?item=5"); document.title = "Cart"',
    'history.replaceState({}, "", "/cart?item=6")',
    'history.pushState({}, "", "/cart#/address")',
    "history.go(-2)",
  ];
  for (const step of steps) {
    await page.evaluate(step);
    await page.waitForTimeout(150);
  }
  await until(async () => (await server.events(app)).length >= 4, "four page views");
  const events = await server.events(app);
  assert.deepEqual(
    events.map(({ name, params }) => [name, params!["path"], params!["title"]]),
    [
      ["page_view", BLANK, "Home"],
      ["page_view", "/cart", "Cart"],
      ["page_view", "/cart#/address", "Cart"],
      ["page_view", BLANK, "Cart"],
    ],
  );
  assert.equal(await page.evaluate("Tributary.getClickId()"), "click-1");
  await page.evaluate("Tributary.shutdown()");
  assert.equal(await page.evaluate('/native code/.test(history.pushState.toString())'), true);
  await page.context().close();
});

test("names the mistake: wrong key, wrong baseUrl, CORS, a blocking extension, an unreachable server", async () => {
  const app = await server.app();
  const problem = async (page: Page): Promise<string> => {
    await page.waitForFunction("window.problems.length > 0");
    return page.evaluate<string>("window.problems[0].code");
  };
  const found: Record<string, string> = {};
  const run = async (name: string, key: string, baseUrl: string, prepare?: (page: Page) => Promise<unknown>) => {
    const page = await open();
    await prepare?.(page);
    await configure(page, key, "", baseUrl);
    found[name] = await problem(page);
    await page.context().close();
  };
  await run("key", "pk_live_unknown", proxy.url);
  await run("page", app.key, site.url);
  await run("host", app.key, "http://127.0.0.1:9");
  await run("extension", app.key, proxy.url, (page) =>
    page.route("**/api/track/**", (route) => route.abort("blockedbyclient")),
  );
  proxy.removesCors = true;
  await run("cors", app.key, proxy.url);
  proxy.removesCors = false;
  assert.deepEqual(found, {
    key: "invalid_api_key",
    page: "wrong_base_url",
    host: "server_unreachable",
    extension: "request_blocked",
    cors: "cors_refused",
  });
  assert.deepEqual(await names(app), []);
});
