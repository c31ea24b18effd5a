// Answers ten questions of a marketer from the pages of the demo alone, counts the clicks, and compares each answer with
// the REST API. docs/DASHBOARD.md lists the questions with their clicks.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { Demo, openBrowser } from "./support.mjs";

const documented = readFileSync(new URL("../../docs/DASHBOARD.md", import.meta.url), "utf8").split("\n");

let demo, browser, page, app;
let clicks = 0;

before(async () => {
  demo = await Demo.start();
  browser = await openBrowser();
  page = await (await browser.newContext({ reducedMotion: "reduce" })).newPage();
  page.on("dialog", (dialog) => dialog.accept());
  await page.goto(`${demo.url}/sign-in`);
  await page.getByLabel("Email").fill("demo@example.com");
  await page.getByLabel("Password", { exact: true }).fill(demo.password);
  await Promise.all([page.waitForNavigation(), page.getByRole("button", { name: "Sign in", exact: true }).click()]);
  const { data } = await demo.api("");
  app = data.find((one) => one.name.startsWith("Stride")).id;
});

after(async () => {
  await browser?.close();
  demo?.stop();
});

// Each question starts on the overview of an app.
function question(text, answer) {
  test(text, async () => {
    await page.goto(`${demo.url}/apps/${app}`);
    clicks = 0;
    await answer();
    const row = documented.find((line) => line.startsWith(`| ${text} |`));
    assert.equal(row?.split("|")[2].trim(), String(clicks), "clicks in docs/DASHBOARD.md");
  });
}

async function click(locator) {
  clicks += 1;
  await locator.click();
}
const follow = (locator) => Promise.all([page.waitForNavigation(), click(locator)]);
const link = (name, within = page) => within.getByRole("link", { name, exact: true }).first();
const menu = (name) => follow(link(name, page.getByRole("navigation", { name: "Main" })));
const press = (name) => follow(page.getByRole("button", { name, exact: true }));
const panel = (name) => page.getByRole("region", { name, exact: true });
async function pick(label, value) {
  clicks += 1;
  await page.getByLabel(label, { exact: true }).selectOption(value);
}
// A list that applies at once.
const switchTo = (label, value) => Promise.all([page.waitForNavigation(), pick(label, value)]);
async function period(name) {
  await click(page.locator("details[data-menu=period] summary"));
  await follow(link(name, page.getByRole("navigation", { name: "Period" })));
}
async function jump(words) {
  await click(page.locator("[data-palette]"));
  await page.getByRole("combobox", { name: "Command" }).fill(words);
  await follow(page.getByRole("listbox", { name: "Commands" }).getByRole("option").first());
}

const rest = (path, body) => demo.api(`/${app}/${path}`, body);
// The days of the pages, unless others are chosen.
async function days() {
  const { from, to } = (await rest("overview")).data;
  return `from=${from}&to=${to}`;
}
const cell = async (row, label) => {
  const heads = await row.locator("xpath=ancestor::table//thead//th").allInnerTexts();
  const place = heads.findIndex((head) => head.startsWith(label));
  return row.locator("th, td").nth(place).innerText();
};
const card = (label) => page.locator(".kpi", { hasText: label }).locator(".kpi-value").innerText();
const number = (text) => Number(text.split("\n")[0].replace(/[^\d.-]/g, ""));

// The demo goes on while its pages are read, and pages round.
const TOLERANCE = 0.03;
function assertNear(shown, expected, what) {
  const allowed = Math.max(1, Math.abs(expected) * TOLERANCE);
  assert.ok(Math.abs(number(shown) - expected) <= allowed, `${what}: ${shown} and ${expected}`);
}

question("Which campaign earns most per install in Germany?", async () => {
  await follow(link("Germany (DE)", panel("Countries")));
  await jump("revenue per install by campaign");
  const { data } = await rest(`stats?groupBy=campaign&country=DE&${await days()}`);
  const best = Math.max(...data.map((one) => one.arpu ?? 0));
  const row = panel("Report").locator("tbody tr").first();
  assertNear(await cell(row, "Revenue per install"), best, "revenue per install");
  assert.match(await page.locator(".tags").innerText(), /Country: Germany/);
});

question("Why was this install organic?", async () => {
  await menu("Events");
  await pick("Credited to", "organic");
  await press("Filter");
  await follow(page.locator("tbody tr", { hasText: "SDK" }).first().locator("a[href*='/devices/']"));
  const device = page.url().match(/devices\/([^?]+)/)[1];
  const { reason, network } = (await rest(`devices/${device}`)).data.attribution;
  assert.equal(network, "organic");
  assert.ok((await page.locator("main").innerText()).includes(reason), reason);
});

question("What did Meta cost last month, and what was its ROAS?", async () => {
  await period("Last month");
  await follow(link("Meta", panel("Networks")));
  const today = new Date();
  const day = (month, number) => new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() + month, number)).toISOString().slice(0, 10);
  const { meta } = await rest(`stats?groupBy=network&network=network_a&from=${day(-1, 1)}&to=${day(0, 0)}`);
  assertNear(await card("Spend"), meta.totals.cost, "spend");
  assert.equal(await card("ROAS (paid)"), meta.totals.paidRoas.toFixed(2));
});

question("Which link earns most, and where do its visitors come from?", async () => {
  const name = (await panel("Links").locator("td.name a").first().innerText()).trim();
  await follow(panel("Links").locator("a.row-page").first());
  const { topLinks } = (await rest("overview")).data;
  assert.equal(name, topLinks[0].name);
  assertNear(await card("Net revenue"), topLinks[0].netRevenue, "net revenue");
  assert.match(await panel("Clicks by country").innerText(), /\(\w\w\)\s+\d+\.\d %/);
});

question("What share of the installs of each network paid by day 7?", async () => {
  await menu("Cohorts");
  await switchTo("Measure", "payerShare");
  await switchTo("Group by", "network");
  const { data } = await rest(`cohorts?groupBy=network&interval=week&${await days()}`);
  const reached = data.filter((one) => one.network === "network_c").flatMap((one) => {
    const age = one.ages.find(({ day, complete }) => day === 7 && complete);
    return age ? [[age.payers, one.installs]] : [];
  });
  const [payers, installs] = reached.reduce(([p, i], [payers, installs]) => [p + payers, i + installs], [0, 0]);
  const row = page.locator("tbody tr", { hasText: "TikTok" }).first();
  assert.match(await cell(row, "Day 7"), new RegExp(`${payers} of ${installs}`));
});

question("Which purchases did TikTok not receive, and why?", async () => {
  await menu("Deliveries");
  await follow(link("Not delivered, and why"));
  await switchTo("Network", "network_c");
  await switchTo("Event", "purchase");
  const { data } = await rest("undelivered?network=network_c&event=purchase");
  const lost = data.filter((group) => group.losesConversion);
  assert.ok(lost.length > 0);
  for (const [place, group] of lost.entries()) {
    const shown = page.locator(".groups > li").nth(place);
    assertNear(await shown.locator(".group-count").innerText(), group.count, group.reason);
    assert.notEqual((await shown.locator(".hint").first().textContent()).trim(), "");
  }
});

question("What would a click window of one day change?", async () => {
  await jump("what if");
  await page.getByLabel("Click window, in hours").fill("24");
  await press("Try these rules");
  const { data } = await rest("attribution/what-if", { attribution: { clickWindowHours: 24 } });
  const summary = await page.locator("#what-if-result").innerText();
  assertNear(summary.match(/([\d,]+) installs would count elsewhere/)[1], data.moved, "installs that move");
  assert.match(summary, /Nothing was saved[\s\S]+Installs that would move[\s\S]+→ /);
});

question("How am I told when the ROAS of Meta falls below 1?", async () => {
  const count = async () => (await rest("notices")).data.filter((one) => one.metric === "paidRoas" && one.value === 1).length;
  const before = await count();
  await menu("Reports and alerts");
  await follow(link("ROAS of Meta below 1"));
  await press("Create");
  await page.getByRole("heading", { name: "ROAS of Meta below 1" }).waitFor();
  assert.equal(await count(), before + 1);
});

question("How do today's networks compare with yesterday's?", async () => {
  await period("Today");
  assert.match(await page.locator(".bar-state").innerText(), /compared with .+ until \d\d:\d\d/);
  const { to } = (await rest("overview")).data;
  const { data } = await rest(`stats?groupBy=network&from=${to}&to=${to}`);
  const rows = panel("Networks").locator("tbody tr");
  assert.match((await rows.allInnerTexts()).join(), /from /);
  for (const [id, name] of [["network_a", "Meta"], ["network_c", "TikTok"]]) {
    const installs = data.find((one) => one.network === id)?.installs ?? 0;
    const row = rows.filter({ hasText: name });
    if (installs > 1) assertNear(await cell(row, "Installs"), installs, name);
  }
  const before = (await rest(`overview?from=${to}&to=${to}`)).data.kpis.installs.previous;
  assertNear(await page.locator(".kpi", { hasText: "Installs" }).locator(".kpi-note").first().innerText(), before, "installs before");
});

question("What did a refund change, and how is the person erased?", async () => {
  await menu("Events");
  await page.getByLabel("Event", { exact: true }).fill("refund");
  await press("Filter");
  await follow(page.locator("tbody tr", { hasText: "Billing" }).first().getByRole("link", { name: "refund" }));
  const { data } = await rest(`events?name=refund&source=billing&limit=1`);
  assert.match(await page.locator("main").innerText(), new RegExp(`−${Math.abs(data[0].revenue.amount)}[\\s\\S]+Counted`));
  await follow(link(data[0].deviceId));
  await press("Erase this device's data");
  await page.getByText("Erased. Figures stay the same").waitFor();
  await assert.rejects(rest(`devices/${data[0].deviceId}`), /404/);
});
