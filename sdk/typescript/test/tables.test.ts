// Shared tables that the server passes as well: crates/domain/tests/tables.rs and its evaluation of conversion values.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { evaluate, NEW_STATE, type Document, type AgedDocument, type State } from "../src/evaluate";
import { matching, normaliseEmail, normalisePhone } from "../src/matching";
import { decimal } from "../src/revenue";
import { sha256 } from "../src/sha256";

function table<T>(name: string): T {
  return JSON.parse(readFileSync(`../tables/${name}.json`, "utf8")) as T;
}

interface MatchingCase {
  name: string;
  field: "email" | "phone";
  input: string;
  normalised: Record<string, string>;
  hashes: Record<string, string>;
}

test("matching.json: normalised strings and their hashes", () => {
  const { cases } = table<{ cases: MatchingCase[] }>("matching");
  for (const { name, field, input, normalised, hashes } of cases) {
    const strings = field === "email" ? normaliseEmail(input) : normalisePhone(input);
    assert.deepEqual(strings, normalised, name);
    const found = field === "email" ? matching(input, null) : matching(null, input);
    assert.deepEqual(found, hashes, name);
  }
  assert.ok(cases.length >= 60);
});

interface RevenueCase {
  name: string;
  kind: "text" | "number";
  input: string;
  amount: string | null;
}

test("revenue.json: accepted amounts and their value", () => {
  const { cases } = table<{ cases: RevenueCase[] }>("revenue");
  for (const { name, kind, input, amount } of cases) {
    assert.equal(decimal(kind === "text" ? input : Number(input)), amount, `${kind}: ${name}`);
  }
  assert.ok(cases.length >= 60);
});

interface Call {
  after: number;
  window: number;
  fine: number;
  coarse: string;
  lock: boolean;
}

interface ConversionRow {
  name: string;
  document: Document | string | null;
  events: {
    atSeconds: number;
    name?: string;
    revenue?: number | string;
    currency?: string;
    fetch?: Document | string;
  }[];
  expected: Call[];
}

/** Simulates a device. The state is serialised to JSON after each step, as in a storage. */
function play(row: ConversionRow, documents: Record<string, Document>): Call[] {
  const named = (document: Document | string | null): Document | null =>
    typeof document === "string" ? documents[document]! : document;
  const calls: Call[] = [];
  let document = named(row.document);
  let fetchedAt = 0;
  let stored = JSON.stringify(NEW_STATE);
  const step = (
    after: number,
    atSeconds: number,
    event?: { name: string; revenue?: string; currency?: string },
  ): void => {
    const aged: AgedDocument | null = document && { document, ageMs: (atSeconds - fetchedAt) * 1000 };
    const { state, update } = evaluate(aged, JSON.parse(stored) as State, atSeconds * 1000, event);
    stored = JSON.stringify(state);
    if (!update) return;
    const { window, fineValue: fine, coarseValue: coarse, lockWindow: lock } = update;
    calls.push({ after, window, fine, coarse, lock });
  };
  step(0, 0);
  row.events.forEach(({ atSeconds, name, revenue, currency, fetch }, index) => {
    if (fetch !== undefined) {
      document = named(fetch);
      fetchedAt = atSeconds;
      return step(index + 1, atSeconds);
    }
    const amount = revenue === undefined ? null : decimal(revenue);
    step(index + 1, atSeconds, { name: name!, ...(amount && { revenue: amount }), ...(currency && { currency }) });
  });
  return calls;
}

test("conversion_values.json: every row results in exactly the listed calls", () => {
  const { documents, rows } = table<{ documents: Record<string, Document>; rows: ConversionRow[] }>(
    "conversion_values",
  );
  for (const row of rows) assert.deepEqual(play(row, documents), row.expected, row.name);
  assert.ok(rows.length >= 80);
});

test("SHA-256 equals Node's implementation for all lengths", () => {
  for (let length = 0; length < 200; length++) {
    const text = "ä😀z".repeat(length).slice(0, length);
    assert.equal(sha256(text), createHash("sha256").update(text, "utf8").digest("hex"), String(length));
  }
});

test("rejects values that are not amounts", () => {
  for (const value of [NaN, Infinity, null, undefined, {}, [], true]) assert.equal(decimal(value), null);
});
