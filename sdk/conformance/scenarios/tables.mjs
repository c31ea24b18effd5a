// The tables that all SDKs share (sdk/tables).

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { drain } from "./delivery.mjs";

const table = (name) => JSON.parse(readFileSync(new URL(`../../tables/${name}.json`, import.meta.url), "utf8")).cases;

/** Returns a decimal or number as millionths. */
function micros(amount) {
  const text = typeof amount === "number" ? amount.toFixed(6) : amount;
  const [, minus, whole, fraction = ""] = /^(-?)([0-9]+)(?:\.([0-9]+))?$/.exec(text);
  return String(BigInt(minus + whole + fraction.padEnd(6, "0")));
}

async function revenueTable(t) {
  const driver = await t.register();
  const rows = table("revenue");
  for (const { kind, input } of rows) {
    // A number is sent with the digits in the table.
    const revenue = kind === "text" ? JSON.stringify(input) : input;
    await driver.raw(`{"do":"track","name":"row","params":{"revenue":${revenue},"currency":"eur"}}`);
  }
  await driver.flush();
  await drain(driver);
  assert.equal(t.server.events.length, rows.length);
  rows.forEach(({ name, kind, micros: expected }, at) => {
    const { revenue = null, currency } = t.server.events[at].event;
    assert.equal(revenue === null ? null : micros(revenue), expected, `${kind}: ${name}`);
    assert.equal(currency, "EUR");
  });
}

async function matchingTable(t) {
  const driver = await t.register();
  const wrong = [];
  for (const [at, { name, field, input, hashes }] of table("matching").entries()) {
    // Another value in between: an SDK need not send known hashes again.
    const other = field === "email" ? `row${at}@example.org` : `+1415555${1000 + at}`;
    await driver.do("setMatching", { [field]: other });
    await driver.flush();
    const before = t.server.to("identify").length;
    await driver.do("setMatching", { [field]: input });
    await driver.flush();
    const sent = t.server
      .to("identify")
      .slice(before)
      .map(({ body }) => body.matching ?? {});
    const found = Object.fromEntries(Object.entries(Object.assign({}, ...sent)).filter(([, hash]) => hash !== null));
    const expected = Object.entries(hashes).every(([key, hash]) => found[key] === hash);
    const more = Object.keys(found).filter((key) => !(key in hashes));
    if (!expected || more.length > 0)
      wrong.push(`${name}: ${JSON.stringify(found)} instead of ${JSON.stringify(hashes)}`);
  }
  assert.deepEqual(wrong, []);
}

export const TABLES = [
  { name: "revenue_table", requires: "Amounts are sent as sdk/tables/revenue.json says.", run: revenueTable },
  { name: "matching_table", requires: "Hashes are those in sdk/tables/matching.json.", run: matchingTable },
];
