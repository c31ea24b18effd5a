// Walks through the dashboard in a browser: set-up, app, link, click, event, network, delivery, key, conversion values,
// sign-out. Takes screenshots of every page and checks it with axe.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { PASSWORD, Service, inspectPage, openBrowser } from "./support.mjs";

// Goes into every field that a visitor or a team member can fill.
const MARKUP = `<img src=x onerror="document.title='owned'"><script>document.title="owned"</script>`;
const ANDROID = "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Mobile Safari/537.36";

// Expected console errors: 4xx responses, and previews that htmx aborts when the page is left. A failed request has
// another event name.
const EXPECTED_ERROR = /status of (4\d\d)|^htmx:(afterRequest|sendAbort)\b/;

let service, browser, page, app, sdkKey, linkUrl;
const problems = [];
// Types of the dialogs that the page opened.
const dialogs = [];

before(async () => {
  service = await Service.start();
  browser = await openBrowser();
  const context = await browser.newContext({ reducedMotion: "reduce" });
  page = await context.newPage();
  page.on("pageerror", (error) => problems.push(`${page.url()}: ${error}`));
  page.on("console", (message) => {
    if (message.type() === "error" && !EXPECTED_ERROR.test(message.text())) problems.push(`${page.url()}: ${message.text()}`);
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(service.url) && !request.url().startsWith("data:")) problems.push(`request to another host: ${request.url()}`);
  });
  page.on("dialog", (dialog) => {
    dialogs.push(dialog.type());
    return dialog.accept();
  });
});

after(async () => {
  await browser?.close();
  service?.stop();
});

const open = (path) => page.goto(service.url + path);
const inspect = async (name) => problems.push(...(await inspectPage(page, name)));
const submit = (name) => Promise.all([page.waitForNavigation(), page.getByRole("button", { name, exact: true }).click()]);
const post = (path, key, body) =>
  fetch(service.url + path, { method: "POST", headers: { "content-type": "application/json", "x-tributary-key": key, "user-agent": ANDROID }, body: JSON.stringify(body) });

test("set-up creates an account and signs in", async () => {
  await open(await service.setupLink());
  await inspect("setup");
  await page.getByLabel("Email").fill("owner@example.com");
  await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await submit("Create account");
  await page.getByRole("link", { name: "Open the dashboard" }).click();
  await page.waitForURL("**/portfolio");
  await inspect("portfolio-empty");
});

test("an app is created", async () => {
  await open("/apps/new");
  await inspect("app-new");
  await submit("Create app");
  assert.match(await page.getByRole("alert").innerText(), /Must not be empty/);
  await page.getByLabel("Name", { exact: true }).fill(`Runner ${MARKUP}`);
  await page.getByLabel("Android package name").fill("com.example.runner");
  await page.getByLabel("App Store id").fill("123456789");
  await submit("Create app");
  app = page.url().match(/\/apps\/(app_\w+)\/start/)[1];
  assert.match(await page.locator(".lead").innerText(), /0 of 6 done/);
  await inspect("start");
});

test("a link is previewed and created", async () => {
  await open(`/apps/${app}/links`);
  await inspect("links-empty");
  await open(`/apps/${app}/links/new`);
  await page.getByLabel("Name", { exact: true }).fill(`Spring ${MARKUP}`);
  await page.getByLabel("Network", { exact: true }).selectOption("network_a");
  await inspect("link-new-short");
  await page.locator("summary", { hasText: "Advanced" }).click();
  await page.getByLabel("Slug").fill("spring-social");
  await page.getByLabel("Folder").fill("Spring 2026");
  await page.getByLabel("Tags").fill("influencer, q4");
  await page.locator("#preview-url", { hasText: "/c/spring-social" }).waitFor();
  await page.locator("#preview-parameters", { hasText: "campaign_id=" }).waitFor();
  await inspect("link-new");
  await submit("Create link");
  linkUrl = await page.locator("#preview-url").innerText();
  await inspect("link");
  await open(`/apps/${app}/links`);
  await inspect("links");
});

test("a notice is previewed, created, tested and deleted", async () => {
  await open(`/apps/${app}/notices`);
  await inspect("notices-empty");
  await page.getByRole("link", { name: "New report or alert" }).first().click();
  await page.locator("#preview", { hasText: "net revenue" }).waitFor();
  assert.equal(await page.getByLabel("Metric").isVisible(), false);
  await page.getByLabel("Send a message").selectOption("threshold");
  await page.getByLabel("Metric").selectOption("cost");
  await page.getByLabel("Limit").fill("500");
  await page.locator("#preview", { hasText: "Spend over $500.00" }).waitFor();
  await inspect("notice-new");
  await submit("Create");
  assert.match(await page.getByRole("alert").innerText(), /URL/);
  await page.getByLabel("Name", { exact: true }).fill(`Spend ${MARKUP}`);
  await page.getByLabel("Channel").selectOption("email");
  await page.getByLabel("Recipients").fill("team@example.com");
  await submit("Create");
  await page.getByRole("button", { name: "Send a test" }).click();
  await page.locator("#tested", { hasText: "E-mail is not set up" }).waitFor();
  await inspect("notice");
  await open(`/apps/${app}/notices`);
  await inspect("notices");
  await page.locator("tbody a").click();
  await submit("Delete");
  await page.getByRole("heading", { name: "No reports or alerts yet" }).waitFor();
  // A suggestion takes two clicks, because the member's address is filled in.
  await page.getByRole("link", { name: "Integration paused" }).click();
  assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "Integration paused");
  await page.getByLabel("Channel").selectOption("email");
  assert.equal(await page.getByLabel("Recipients").inputValue(), "owner@example.com");
  await submit("Create");
  await submit("Delete");
});

test("links are found, duplicated, downloaded as QR codes and created from CSV", async () => {
  await open(`/apps/${app}/links`);
  await page.getByRole("link", { name: "Tag influencer" }).click();
  await page.waitForURL("**/links?tag=influencer");
  assert.equal(await page.getByLabel("Tag", { exact: true }).inputValue(), "influencer");
  await page.getByLabel("Search").fill("nothing like this");
  await submit("Filter");
  assert.match(page.url(), /search=nothing/);
  await page.getByRole("heading", { name: "No link matches" }).waitFor();
  await inspect("links-no-match");
  await page.getByRole("link", { name: "Show all", exact: true }).click();
  await page.locator("tbody a").first().click();
  await page.getByRole("heading", { name: "Clicks by country" }).waitFor();
  await page.getByRole("navigation", { name: "Period" }).getByRole("link", { name: "7 days" }).click();
  await page.waitForURL("**?range=7d");
  for (const kind of ["SVG", "PNG"]) {
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: `QR code as ${kind}` }).click()]);
    assert.equal(download.suggestedFilename(), `spring-social.${kind.toLowerCase()}`);
  }
  await page.getByRole("link", { name: "Duplicate" }).click();
  assert.match(await page.getByLabel("Name", { exact: true }).inputValue(), /\(copy\)$/);
  await page.getByLabel("Type").selectOption("web_funnel");
  await page.getByLabel("Destination URL").fill("https://example.com/offer?a=1#top");
  await page.locator("summary", { hasText: "UTM parameters" }).click();
  await page.getByLabel("Source").fill("news letter");
  await inspect("link-utm");
  await submit("Create link");
  assert.equal(await page.getByLabel("Destination URL").inputValue(), "https://example.com/offer?a=1&utm_source=news%20letter#top");
  await open(`/apps/${app}/links/bulk`);
  await inspect("links-bulk");
  await page.getByLabel("Rows").fill("name,slug\nOne,No Slug\nTwo,two-links");
  await submit("Preview");
  assert.match(await page.locator("tbody").innerText(), /slug: Must be/);
  await inspect("links-bulk-faults");
  await page.getByLabel("Rows").fill("name,slug\nOne,one-link\nTwo,two-links");
  await submit("Preview");
  await submit("Create 2 links");
  await page.locator(".toast", { hasText: "Created." }).waitFor();
  assert.equal(await page.locator("tbody tr").count(), 4);
});

test("pages switch between live and test data", async () => {
  const environment = (name) => page.getByRole("navigation", { name: "Environment" }).getByRole("link", { name }).click();
  for (const path of ["", "/links"]) {
    await open(`/apps/${app}${path}`);
    await environment("Test");
    await page.waitForURL(`**/apps/${app}${path}?environment=test`);
    assert.match(await page.locator(".banner-notice").innerText(), /never mixed with live data/);
    await environment("Live");
    await page.waitForURL(`**/apps/${app}${path}`);
  }
});

test("a simulated network is connected and tested", async () => {
  await open(`/apps/${app}/integrations`);
  await inspect("integrations");
  await open(`/apps/${app}/integrations/network_a`);
  await page.getByLabel("Forward events").check();
  await page.getByLabel("Access token").fill("EAABsbCS1234567890");
  await page.getByLabel("Pixel id").fill("1234567890");
  await page.getByLabel("Test event code").fill("TEST123");
  await submit("Save");
  assert.match(await page.locator(".head .pill").innerText(), /Active/);
  await page.getByRole("button", { name: "Test connection" }).click();
  await page.getByText("The network accepted the test event").waitFor();
  await inspect("integration");
  assert.doesNotMatch(await page.content(), /EAABsbCS1234567890/);
});

test("a click, an install and a purchase appear without a reload", async () => {
  await open(`/apps/${app}/settings`);
  await inspect("settings");
  sdkKey = await page.locator("#live-key").innerText();
  await open(`/apps/${app}/events`);
  await inspect("events-empty");
  const tap = await fetch(`${linkUrl}?fbclid=abc123&campaign_name=${encodeURIComponent(MARKUP)}`, {
    redirect: "manual",
    headers: { "user-agent": ANDROID, accept: "text/html" },
  });
  assert.equal(tap.status, 302);
  const referrer = new URL(tap.headers.get("location")).searchParams.get("referrer");
  const configured = await post("/api/track/configure", sdkKey, {
    deviceId: "device-1", platform: "android", osVersion: "14", model: `Pixel ${MARKUP}`, appVersion: "1.0",
    installReferrer: { referrer },
    consent: { adUserData: true, adPersonalization: true },
  });
  assert.equal(configured.status, 200);
  const sent = await post("/api/track/events", sdkKey, {
    deviceId: "device-1",
    events: [
      { eventId: "e-1", name: "purchase", revenue: "9.99", currency: "USD", params: { note: MARKUP } },
      { eventId: "e-2", name: MARKUP },
      { eventId: "e-3", name: "subscribe", revenue: "5000", currency: "USD" },
    ],
  });
  assert.equal(sent.status, 202);
  // The page polls, so it is not reloaded.
  await page.getByRole("link", { name: "purchase" }).waitFor();
  await page.getByText("not counted: the amount exceeds 2,000 USD").waitFor();
});

test("a flagged install is held until it is released", async () => {
  await open(`/apps/${app}`);
  assert.match(await page.locator(".banner-notice").innerText(), /Held for a review in this period: 1 install\./);
  await page.getByRole("link", { name: "Review held installs" }).click();
  await page.waitForURL(`**/apps/${app}/held`);
  assert.match(await page.locator("main").innerText(), /opened impossibly soon after the click/);
  await inspect("held");
  await submit("Release");
  await page.locator(".toast", { hasText: "Released." }).waitFor();
  await inspect("held-empty");
  await open(`/apps/${app}/events`);
  await page.locator(".pill-good", { hasText: "Meta" }).first().waitFor({ timeout: 60_000 });
  await inspect("events");
});

test("an event and its device show attribution and delivery", async () => {
  await open(`/apps/${app}/events`);
  await Promise.all([page.waitForNavigation(), page.getByRole("link", { name: "purchase" }).click()]);
  assert.match(await page.locator("main").innerText(), /Counted as the device's first payment/);
  assert.match(await page.locator("main").innerText(), /delivered\s+Meta as Purchase/);
  await page.locator("details.fold summary").first().click();
  await inspect("event");
  await open(`/apps/${app}/devices/device-1`);
  assert.match(await page.locator("main").innerText(), /credited/);
  await inspect("device");
  await open(`/apps/${app}/deliveries`);
  assert.match(await page.locator("main").innerText(), /purchase\s+Meta as Purchase/);
  await inspect("deliveries");
  await Promise.all([page.waitForNavigation(), page.getByRole("link", { name: "Not delivered, and why" }).click()]);
  const counted = page.getByRole("link", { name: /^Show the / }).first();
  const count = (await counted.innerText()).trim();
  await inspect("undelivered");
  await Promise.all([page.waitForNavigation(), counted.click()]);
  assert.equal(await page.locator("tbody tr").count(), Number(count), "the count leads to its events");
  await inspect("events-not-sent");
  await open(`/apps/${app}`);
  assert.match(await page.locator(".kpis").innerText(), /Net revenue\s+\$9\.99/);
  await inspect("overview");
  await open(`/apps/${app}/explore?groupBy=network&then=campaign`);
  assert.match(await page.locator("tfoot").innerText(), /\$9\.99/);
  await inspect("explore");
  const file = await page.request.get(`${service.url}/apps/${app}/explore.csv?groupBy=network`);
  assert.match(await file.text(), /^network,cost,clicks,installs,paidCpi,netRevenue,paidRoas/);
  await open(`/apps/${app}/cohorts?interval=day&show=cumulativeRevenue`);
  assert.match(await page.locator("main").innerText(), /Payments on websites are not included[\s\S]+The total counts the same installs/);
  await open(`/apps/${app}/cohorts?interval=day`);
  await inspect("cohorts");
  await open("/portfolio");
  await inspect("portfolio");
  await open(`/apps/${app}/start`);
  assert.match(await page.locator(".lead").innerText(), /5 of 6 done/);
});

test("other attribution rules are tried without saving them", async () => {
  await open(`/apps/${app}/settings`);
  await Promise.all([page.waitForNavigation(), page.getByRole("link", { name: "Try other rules" }).click()]);
  await page.getByLabel("Click window, in hours").fill("1");
  await Promise.all([
    page.waitForNavigation(), page.getByRole("button", { name: "Try these rules" }).click(),
  ]);
  assert.match(await page.locator("#what-if-result").innerText(), /Nothing was saved[\s\S]+ROAS\s+as on the overview/);
  assert.match(await page.getByRole("region", { name: "By network" }).locator("tbody").innerText(), /Total \(blended\)/);
  await inspect("what-if");
  const pieces = await (await page.request.get(page.url())).text();
  assert.match(pieces, /replay-progress">0 of 1 installs replayed …/);
  await open(`/apps/${app}/settings`);
  assert.equal(await page.getByLabel("Click window, in hours").inputValue(), "168");
});

test("the event mapping accepts a custom event and rejects one that is never forwarded", async () => {
  await open(`/apps/${app}/settings/mapping`);
  await inspect("mapping");
  const form = page.locator("form#network_a");
  const event = form.getByLabel(/row 9: your event/);
  await event.fill("refund");
  await form.getByLabel(/row 9: name at the network/).fill("Refunded");
  await Promise.all([page.waitForNavigation(), form.getByRole("button", { name: "Save" }).click()]);
  assert.match(await page.getByRole("alert").innerText(), /never forwarded/);
  await event.fill("boss_defeated");
  await Promise.all([page.waitForNavigation(), form.getByRole("button", { name: "Save" }).click()]);
  assert.equal(await form.getByLabel(/row 9: your event/).inputValue(), "boss_defeated");
});

test("two edited mappings are both kept", async () => {
  await open(`/apps/${app}/settings/mapping`);
  const event = (network) => page.locator(`form#${network}`).getByLabel(/row 1: your event/);
  await event("network_a").fill("first_a");
  await event("network_c").fill("first_c");
  await Promise.all([page.waitForNavigation(), page.locator("form#network_a").getByRole("button", { name: "Save" }).click()]);
  assert.equal(await event("network_a").inputValue(), "first_a");
  assert.equal(await event("network_c").inputValue(), "first_c");
  assert.match(await page.locator("form#network_c").innerText(), /Restored what you typed here/);
  await Promise.all([page.waitForNavigation(), page.locator("form#network_c").getByRole("button", { name: "Save" }).click()]);
  await page.reload();
  assert.deepEqual([await event("network_a").inputValue(), await event("network_c").inputValue()], ["first_a", "first_c"]);
});

test("conversion values are validated while typing and saved", async () => {
  await open(`/apps/${app}/conversion-values`);
  await inspect("conversion-values-empty");
  await submit("Funnel");
  await page.locator("#checked", { hasText: "The configuration is valid" }).waitFor();
  assert.match(await page.locator("#checked").innerText(), /purchase/);
  const first = page.locator('input[name="windows[0].values[0].fineValue"]');
  await first.fill("99");
  await page.locator("#checked", { hasText: "Cannot be saved yet" }).waitFor();
  await first.fill("63");
  await page.locator("#checked", { hasText: "The configuration is valid" }).waitFor();
  const values = () => page.locator('input[name^="windows[2].values"][name$=".name"]').count();
  const count = await values();
  await page.locator('button[name="add"][value="2"]').click();
  await page.locator(`input[name="windows[2].values[${count}].name"]`).waitFor();
  await inspect("conversion-values");
  await page.locator('#document button:has-text("Save")').click();
  await page.getByText("Saved.").waitFor();
  assert.match(await page.locator("main").innerText(), /Version 1/);
  await open(`/apps/${app}/conversion-values/postbacks`);
  await inspect("postbacks");
});

test("a billing provider's secret is generated and shown once", async () => {
  await open(`/apps/${app}/integrations`);
  const card = page.getByRole("region", { name: "Superwall", exact: true });
  await Promise.all([page.waitForNavigation(), card.getByRole("button", { name: "Generate secret" }).click()]);
  const secret = await page.locator("#secret").innerText();
  assert.match(secret, /^whsec_/);
  await inspect("integrations-secret");
  await page.reload();
  assert.ok(!(await page.content()).includes(secret));
  assert.match(await card.innerText(), /Secret set/);
});

test("costs are imported as lines", async () => {
  await open(`/apps/${app}/costs`);
  await page.getByLabel("Lines").fill("yesterday,network_a,,1,USD");
  await submit("Save costs");
  assert.match(await page.getByRole("alert").innerText(), /Must be a date/);
  await page.getByLabel("Lines").fill("2026-01-02,network_a,238,120.50,USD");
  await submit("Save costs");
  assert.match(await page.locator("tbody").innerText(), /\$120\.50/);
  await inspect("costs");
  const today = new Date().toISOString().slice(0, 10);
  await page.getByLabel("Lines").fill(`${today},network_a,238,4.00,USD`);
  await submit("Save costs");
  await open(`/apps/${app}`);
  assert.match(await page.locator(".kpis").innerText(), /CPI \(paid\)\s+\$4\.00[\s\S]+ROAS \(paid\)\s+2\.50/);
  await inspect("overview-costs");
  await open(`/apps/${app}/explore?groupBy=network`);
  assert.match(await page.locator("tbody tr", { hasText: "network_a" }).innerText(), /\$4\.00\s+1\s+1\s+\$4\.00\s+\$9\.99\s+2\.50/);
  await open(`/apps/${app}/explore?groupBy=hour&range=today`);
  assert.match(await page.locator("tfoot").innerText(), /\$9\.99/);
  await open(`/apps/${app}/cohorts?interval=day&by=network`);
  assert.match(await page.locator(".heat tbody").innerText(), /Meta\s+\d+ \w+ \d{4}\s+1\s+100\.0 %\s*so far/);
  await page.getByLabel("Measure", { exact: true }).selectOption("paidRoas");
  await page.waitForURL(/show=paidRoas/);
  assert.match(await page.locator(".heat tbody").innerText(), /Meta\s+\d+ \w+ \d{4}\s+1\s+\$4\.00\s+2\.50\s*so far/);
  await page.locator(".heat tbody").getByRole("link", { name: "Meta" }).first().click();
  await page.waitForURL(/network=network_a/);
  assert.match(await page.locator(".tags").innerText(), /Network: Meta/);
  await inspect("cohorts-roas");
  const cohorts = await page.request.get(`${service.url}/apps/${app}/cohorts.csv?interval=day&show=paidRoas`);
  assert.match(await cohorts.text(), /^cohort,installs,cost,completeAge,paidRoas D0/);
  await open(`/apps/${app}/cohorts?platform=ios&by=country&network=network_a`);
  assert.match(await page.locator("main").innerText(), /cannot be filtered by platform[\s\S]+cannot be combined/);
});

test("an export is checked before it is saved, and a refused cost source says what to do", async () => {
  await open(`/apps/${app}/costs`);
  await page.getByLabel("Lines").fill('Campaign report\nDay,Campaign,Currency code,Cost\n2026-01-03,Brand,USD,"1,212.50"\nTotal: Account,,,"1,212.50"');
  await submit("Save costs");
  assert.match(await page.locator("#mapping").innerText(), /Google Ads[\s\S]+1 row with totals is left out/);
  await inspect("costs-mapping");
  await submit("Save costs");
  assert.match(await page.locator("tbody").innerText(), /Brand\s+Entered\s+1,212\.50 USD/);
  await page.getByRole("link", { name: "Set up: TikTok" }).click();
  await page.getByLabel("Advertiser id").fill("1234567890");
  await submit("Save");
  assert.match(await page.getByRole("alert").innerText(), /Access token/);
  await page.getByLabel("Access token").fill("bad-token-0123456789");
  await submit("Save");
  for (let tries = 0; tries < 30 && !/Paused/.test(await page.locator(".head").innerText()); tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await page.reload();
  }
  assert.match(await page.locator(".banner-bad").innerText(), /40105[\s\S]+Create a new access token/);
  assert.ok(!(await page.content()).includes("bad-token"));
  await inspect("cost-source");
  await submit("Remove");
});

test("filters, dates and columns stay in the URL and between reports", async () => {
  await open(`/apps/${app}?range=7d`);
  await page.getByRole("region", { name: "Networks" }).getByRole("link", { name: "Meta", exact: true }).click();
  await page.waitForURL(/range=7d&network=network_a$/);
  assert.match(await page.locator(".tags").innerText(), /Network: Meta/);
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Explore" }).click();
  await page.waitForURL(/explore\?range=7d&network=network_a$/);
  await page.locator("summary", { hasText: "Columns" }).click();
  await page.getByLabel("Clicks", { exact: true }).uncheck();
  await page.getByLabel("Trials", { exact: true }).check();
  await Promise.all([page.waitForNavigation(), page.locator(".column-form").getByRole("button", { name: "Apply" }).click()]);
  const heads = await page.getByRole("region", { name: "Report" }).locator("thead").innerText();
  assert.match(heads, /Trials/);
  assert.doesNotMatch(heads, /Clicks/);
  await inspect("explore-columns");
  await page.setViewportSize({ width: 390, height: 900 });
  const columns = ["clicks", "installs", "netRevenue", "purchases", "renewals", "refunds", "events"].map((one) => `&column=${one}`).join("");
  await open(`/apps/${app}/explore?groupBy=network${columns}&sort=events`);
  const sorted = await page.locator("th[aria-sort=descending]").boundingBox();
  assert.ok(sorted.x >= 0 && sorted.x + sorted.width <= 390, `the sorted column is in view: ${JSON.stringify(sorted)}`);
  await page.locator("summary", { hasText: "Columns" }).click();
  const menu = await page.locator(".column-form").boundingBox();
  assert.ok(menu.x >= 0 && menu.x + menu.width <= 390, `the menu is in view: ${JSON.stringify(menu)}`);
  await page.setViewportSize({ width: 1280, height: 900 });
  // A page that is scrolled stays where it is when the table is sorted.
  await page.setViewportSize({ width: 1280, height: 420 });
  const head = page.getByRole("region", { name: "Report" }).getByRole("columnheader", { name: /Installs/ }).getByRole("link");
  // A place where the head is in view, so that the click itself does not scroll.
  await head.evaluate((one) => window.scrollTo(0, one.getBoundingClientRect().top + window.scrollY - 200));
  const before = await page.evaluate(() => window.scrollY);
  assert.ok(before > 0);
  await head.click();
  await page.waitForURL(/sort=installs/);
  await page.waitForFunction((top) => window.scrollY === top, before);
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.getByLabel("Search", { exact: true }).fill("no such row");
  await submit("Search");
  assert.match(await page.locator("main").innerText(), /No row matches the search/);
  await open(`/apps/${app}/explore?groupBy=campaign&event=purchase`);
  await page.getByRole("link", { name: "Remove Event: purchase" }).click();
  await page.waitForURL(/groupBy=campaign$/);
  await page.getByText("Total", { exact: true }).waitFor();
  for (const [dates, words] of [["from=2026-02-01&to=2026-01-01", /first day is after the last/], ["from=2020-01-01&to=2026-01-01", /at most 400 days/], ["from=soon", /cannot be read/]]) {
    await open(`/apps/${app}?${dates}`);
    assert.match(await page.getByRole("status").first().innerText(), words);
  }
});

test("the chart answers to the pointer, the keyboard and dragging", async () => {
  await open(`/apps/${app}?range=7d&stack=network&second=netRevenue&metric=clicks`);
  await inspect("overview-chart");
  const chart = page.locator("[data-chart]");
  const tip = page.locator(".tip");
  await chart.focus();
  await page.keyboard.press("End");
  await tip.filter({ hasText: "(so far)" }).waitFor();
  const last = await tip.innerText();
  await page.keyboard.press("ArrowLeft");
  assert.notEqual(await tip.innerText(), last);
  await page.keyboard.press("Escape");
  assert.equal(await tip.isVisible(), false);
  const box = await chart.locator(".chart").boundingBox();
  const at = (share) => [box.x + box.width * share, box.y + box.height / 2];
  await page.mouse.click(...at(0.5));
  assert.equal(await tip.isVisible(), true, "a click keeps the tooltip");
  await page.mouse.move(...at(0.2));
  await page.mouse.down();
  await page.mouse.move(...at(0.5), { steps: 5 });
  await Promise.all([page.waitForURL(/from=\d{4}-\d\d-\d\d&to=/), page.mouse.up()]);
  assert.doesNotMatch(page.url(), /range=/);
  const context = await browser.newContext({ hasTouch: true, storageState: await page.context().storageState() });
  const phone = await context.newPage();
  await phone.goto(`${service.url}/apps/${app}?range=7d`);
  await phone.locator("[data-chart] .chart").tap();
  assert.equal(await phone.locator(".tip").isVisible(), true, "a tap shows the tooltip, which stays");
  await phone.getByRole("heading", { name: "Overview", exact: true }).tap();
  assert.equal(await phone.locator(".tip").isVisible(), false, "a tap elsewhere hides it");
  await context.close();
  await open(`/apps/${app}?range=today&compare=year`);
  assert.match(await page.locator(".bar-state").innerText(), /compared with .+ until \d\d:\d\d/);
  await page.getByText("Show as table").click();
  assert.ok((await page.locator(".as-table tbody tr").count()) >= 23, "a single day has hours");
});

test("an API key is shown once, works, and is revoked", async () => {
  await open("/keys");
  await page.getByLabel("Name", { exact: true }).fill(MARKUP);
  await submit("Create key");
  await inspect("keys");
  const key = await page.locator("#key").innerText();
  const callApi = () => fetch(`${service.url}/api/v1/apps`, { headers: { authorization: `Bearer ${key}` } });
  assert.equal((await callApi()).status, 200);
  // A reload neither shows the key nor creates another.
  await page.reload();
  assert.ok(!(await page.content()).includes(key));
  await Promise.all([page.waitForNavigation(), page.getByRole("button", { name: `Revoke ${MARKUP}` }).click()]);
  assert.equal((await callApi()).status, 401);
});

test("events are paused, filtered by day and exported", async () => {
  await open(`/apps/${app}/events`);
  await page.getByRole("button", { name: "Pause" }).click();
  assert.match(await page.locator("#live").innerText(), /paused/);
  await page.getByRole("button", { name: "Resume" }).click();
  const today = new Date().toISOString().slice(0, 10);
  await page.getByLabel("From").fill("2020-01-01");
  await page.getByLabel("To", { exact: true }).fill("2020-01-02");
  await submit("Filter");
  await page.getByRole("heading", { name: "No matching events" }).waitFor();
  assert.equal(await page.locator("#live").count(), 0, "days in the past do not change");
  await open(`/apps/${app}/events?from=${today}&to=2020-01-01`);
  assert.match(await page.locator("main").innerText(), /Must not be before the first day/);
  await inspect("events-fault");
  const file = await page.request.get(`${service.url}/apps/${app}/events.csv?name=purchase`);
  assert.match(await file.text(), /^time,event,source[\s\S]+,purchase,SDK,/);
});

test("errors lead to their fields, and nothing typed is lost", async () => {
  await open(`/apps/${app}/settings`);
  await page.getByLabel("Name", { exact: true }).fill("");
  await page.getByLabel("Click window, in hours").fill("9999");
  await submit("Save settings");
  assert.equal(await page.evaluate(() => document.activeElement.name), "name");
  await page.getByRole("link", { name: "Click window, in hours" }).click();
  assert.equal(await page.evaluate(() => document.activeElement.name), "attribution.clickWindowHours");
  await inspect("settings-faults");

  // Another tab saves first.
  await open(`/apps/${app}/settings`);
  const other = await page.context().newPage();
  await other.goto(`${service.url}/apps/${app}/settings`);
  await other.getByLabel("Time zone").fill("Europe/Berlin");
  await Promise.all([other.waitForNavigation(), other.getByRole("button", { name: "Save settings", exact: true }).click()]);
  await other.close();
  await page.getByLabel("Time zone").fill("Europe/Paris");
  await submit("Save settings");
  assert.match(await page.locator("main").innerText(), /another change was saved[\s\S]+Saved meanwhile: .?Europe\/Berlin/);
  await inspect("settings-conflict");
  await page.getByLabel("Time zone").fill("UTC");
  await submit("Save settings");
  await page.locator(".toast", { hasText: "Saved." }).waitFor();

  // The form belongs to another session.
  await page.getByLabel("Link domain").fill("go.example.com");
  await page.evaluate(() => { document.querySelector("form[data-draft] [name=formToken]").value = "outdated"; });
  await submit("Save settings");
  await page.getByRole("heading", { name: "This form has expired" }).waitFor();
  await open(`/apps/${app}`);
  await page.locator(".toast").getByRole("link", { name: "Return to it" }).click();
  await page.getByText("Restored what you typed here").waitFor();
  assert.equal(await page.getByLabel("Link domain").inputValue(), "go.example.com");
  await inspect("settings-restored");
  await Promise.all([page.waitForNavigation(), page.getByRole("button", { name: "Discard it" }).click()]);
  assert.equal(await page.getByLabel("Link domain").inputValue(), "");

  // The browser asks before changes are lost.
  await page.getByLabel("Link domain").click();
  await page.getByLabel("Link domain").fill("go.example.com");
  dialogs.length = 0;
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Events" }).click();
  await page.waitForURL(/\/events$/);
  assert.deepEqual(dialogs, ["beforeunload"]);
  await open("/no/such/page");
  await page.getByRole("heading", { name: "Page not found" }).waitFor();
});

test("a form survives the end of its session", async () => {
  const context = await browser.newContext();
  const tab = await context.newPage();
  const click = (name) => Promise.all([tab.waitForNavigation(), tab.getByRole("button", { name, exact: true }).click()]);
  const signIn = async () => {
    await tab.getByLabel("Email").fill("owner@example.com");
    await tab.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await click("Sign in");
  };
  await tab.goto(`${service.url}/sign-in`);
  await signIn();
  await tab.goto(`${service.url}/apps/${app}/settings?environment=test`);
  await tab.getByLabel("Link domain").fill("late.example.com");
  await open("/account");
  await submit("Sign out everywhere else");
  await click("Save settings");
  assert.match(tab.url(), /\/sign-in/);
  await signIn();
  await tab.locator(".toast").getByRole("link", { name: "Return to it" }).click();
  await tab.getByText("Restored what you typed here").waitFor();
  assert.match(tab.url(), /\/settings\?environment=test$/);
  assert.equal(await tab.getByLabel("Link domain").inputValue(), "late.example.com");
  await context.close();
});

test("keys and the command palette lead to every page", async () => {
  await open(`/apps/${app}`);
  await page.keyboard.press("g");
  await page.keyboard.press("e");
  await page.waitForURL(/\/events$/);
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Command" }).fill("integr");
  await inspect("palette");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/integrations$/);
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Command" }).fill("device-1");
  await page.getByRole("option", { name: /Events of device/ }).click();
  await page.waitForURL(/events\?deviceId=device-1/);
  assert.equal(await page.locator("code.id:visible").count(), 0);
  await page.keyboard.press("i");
  assert.notEqual(await page.locator("code.id:visible").count(), 0);
  await page.keyboard.press("i");
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
  await inspect("shortcuts");
  await page.keyboard.press("Escape");
});

test("views are saved, and a shared overview needs no account", async () => {
  await open(`/apps/${app}?range=7d&network=network_a`);
  await page.locator("summary", { hasText: "Views" }).click();
  await page.getByLabel("Save these dates and filters as").fill("Meta this week");
  await submit("Save view");
  await open(`/apps/${app}/explore`);
  await page.locator("summary", { hasText: "Views" }).click();
  await inspect("views");
  await page.getByRole("link", { name: "Meta this week" }).click();
  await page.waitForURL(/range=7d&network=network_a$/);
  await page.locator("summary", { hasText: "Views" }).click();
  await page.getByRole("link", { name: "Share this overview" }).click();
  await page.getByLabel("Title").fill("For the agency");
  await submit("Create link");
  await inspect("shares");
  const link = await page.locator("#share-url").innerText();
  const context = await browser.newContext();
  const guest = await context.newPage();
  await guest.goto(link);
  assert.match(await guest.locator(".kpis").innerText(), /Net revenue\s+\$9\.99/);
  problems.push(...(await inspectPage(guest, "shared")));
  await open(`/apps/${app}/shares`);
  await submit("Revoke");
  assert.equal((await guest.goto(link)).status(), 404);
  await context.close();
});

test("an invited viewer sees reports and cannot change anything", async () => {
  await open("/team");
  await page.getByLabel("Email").fill("viewer@example.com");
  await page.getByLabel(/viewer/).check();
  await submit("Create invitation");
  await inspect("team");
  const link = await page.locator("#link").innerText();
  const context = await browser.newContext();
  const guest = await context.newPage();
  await guest.goto(link);
  await guest.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await guest.getByRole("button", { name: "Create account" }).click();
  await guest.goto(`${service.url}/apps/${app}`);
  assert.equal(await guest.getByRole("link", { name: "Settings" }).count(), 0);
  for (const path of ["settings", "links", "links/new", "integrations", "conversion-values", "devices/device-1"]) {
    assert.equal((await guest.goto(`${service.url}/apps/${app}/${path}`)).status(), 403, path);
  }
  assert.equal((await guest.goto(`${service.url}/apps/${app}/events`)).status(), 200);
  await context.close();
  await open("/audit-log");
  await inspect("audit-log");
});

test("a removed person has no access: neither sessions nor keys nor sign-in", async () => {
  await open("/team");
  await page.getByLabel("Email").fill("leaver@example.com");
  await page.getByLabel(/admin/).check();
  await submit("Create invitation");
  const link = await page.locator("#link").innerText();
  const context = await browser.newContext();
  const guest = await context.newPage();
  const click = (name) => Promise.all([guest.waitForNavigation(), guest.getByRole("button", { name, exact: true }).click()]);
  await guest.goto(link);
  await guest.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await click("Create account");
  const second = await browser.newContext();
  const elsewhere = await second.newPage();
  const signIn = async (password) => {
    await elsewhere.goto(`${service.url}/sign-in`);
    await elsewhere.getByLabel("Email").fill("leaver@example.com");
    await elsewhere.getByLabel("Password", { exact: true }).fill(password);
    await Promise.all([elsewhere.waitForNavigation(), elsewhere.getByRole("button", { name: "Sign in", exact: true }).click()]);
  };
  await signIn(PASSWORD);
  await guest.goto(`${service.url}/account`);
  assert.equal(await guest.getByRole("region", { name: "Where you are signed in" }).locator("tbody tr").count(), 2, "both sessions are listed");
  await guest.goto(`${service.url}/keys`);
  await guest.getByLabel("Name", { exact: true }).fill("Leaver");
  await click("Create key");
  const key = await guest.locator("#key").innerText();
  const callApi = () => fetch(`${service.url}/api/v1/apps`, { headers: { authorization: `Bearer ${key}` } });
  assert.equal((await callApi()).status, 200);

  // The operator resets the password, which signs the person out, and the person chooses a new one.
  const reset = service.command("admin", "user", "reset", "leaver@example.com").match(/\/reset\/\w+/)[0];
  await guest.goto(`${service.url}/account`);
  assert.match(guest.url(), /\/sign-in/);
  await guest.goto(service.url + reset);
  problems.push(...(await inspectPage(guest, "reset")));
  await guest.getByLabel("New password").fill(`${PASSWORD} again`);
  await click("Set password");
  problems.push(...(await inspectPage(guest, "reset-done")));
  assert.equal((await guest.goto(service.url + reset)).status(), 404, "the link works once");
  await signIn(`${PASSWORD} again`);
  await elsewhere.goto(`${service.url}/account`);
  assert.match(elsewhere.url(), /\/account/);
  assert.equal((await callApi()).status, 200, "keys survive a reset");

  await open("/team");
  await Promise.all([page.waitForNavigation(), page.getByRole("button", { name: "Remove leaver@example.com" }).click()]);
  assert.match(await page.locator("tbody").innerText(), /Leaver/);
  await inspect("member-removal");
  await submit("Remove member");
  assert.equal((await callApi()).status, 401);
  await elsewhere.goto(`${service.url}/account`);
  assert.match(elsewhere.url(), /\/sign-in/);
  await signIn(`${PASSWORD} again`);
  assert.match(await elsewhere.getByRole("alert").innerText(), /Wrong email address or password/);
  await context.close();
  await second.close();
});

test("a person's data is found by device and erased", async () => {
  await open(`/apps/${app}/deliveries?status=odd`);
  await page.getByText("Choose one of the list.").waitFor();
  await open(`/apps/${app}/events?userId=nobody`);
  await page.getByText("No matching events").waitFor();
  await open(`/apps/${app}/devices/device-1`);
  await submit("Erase this device's data");
  await page.getByText("Erased. Figures stay the same").waitFor();
  assert.equal(await page.getByRole("link", { name: "device-1", exact: true }).count(), 0);
  assert.equal((await page.goto(`${service.url}/apps/${app}/devices/device-1`)).status(), 404);
});

test("a password change and a sign-out end sessions", async () => {
  const context = await browser.newContext({ storageState: await page.context().storageState() });
  const other = await context.newPage();
  assert.match((await other.goto(`${service.url}/account`)).url(), /\/account/);
  await open("/account");
  await inspect("account");
  await page.getByLabel("Current password").fill(PASSWORD);
  await page.getByLabel("New password").fill(`${PASSWORD} indeed`);
  await submit("Change password");
  await page.getByText("Password changed").waitFor();
  await other.goto(`${service.url}/account`);
  assert.match(other.url(), /\/sign-in\?next=%2Faccount/);
  await context.close();
  await page.locator(".drop-end summary").click();
  await submit("Sign out");
  await open(`/apps/${app}/events`);
  assert.match(page.url(), /\/sign-in/);
  await inspect("sign-in");
  await page.getByLabel("Email").fill("owner@example.com");
  await page.getByLabel("Password", { exact: true }).fill(`${PASSWORD} indeed`);
  await submit("Sign in");
  assert.match(page.url(), new RegExp(`/apps/${app}/events`));
});

test("sign-in is rate limited after five wrong passwords", async () => {
  const context = await browser.newContext();
  const guest = await context.newPage();
  await guest.goto(`${service.url}/sign-in`);
  for (let attempt = 0; attempt < 6; attempt++) {
    await guest.getByLabel("Email").fill("unknown@example.com");
    await guest.getByLabel("Password", { exact: true }).fill("not the password");
    await Promise.all([guest.waitForNavigation(), guest.getByRole("button", { name: "Sign in" }).click()]);
  }
  assert.match(await guest.getByRole("alert").innerText(), /Too many failed attempts/);
  await context.close();
});

test("no page had errors, ran injected scripts or called other hosts", () => {
  assert.deepEqual(problems, []);
});
