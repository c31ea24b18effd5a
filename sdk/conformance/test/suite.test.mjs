// Tests of the suite itself: it passes the reference SDK, and every scenario fails if the SDK breaks the rule that the
// scenario checks.

import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { violations } from "../lib/check.mjs";
import { elementTexts } from "../lib/json.mjs";
import { runScenario } from "../lib/scenario.mjs";
import { SCENARIOS } from "../scenarios/index.mjs";
import { BREAKS } from "./breaks.mjs";

const reference = fileURLToPath(new URL("../reference", import.meta.url));
const work = mkdtempSync(join(tmpdir(), "tributary-conformance-test-"));
after(() => rmSync(work, { recursive: true, force: true }));

const find = (name) => SCENARIOS.find((scenario) => scenario.name === name);

/** Copies the reference SDK and replaces a piece of its code. Returns the driver command. */
function broken(number, { file = "sdk.mjs", from, to }) {
  const folder = join(work, String(number));
  cpSync(reference, folder, { recursive: true });
  const path = join(folder, file);
  const source = readFileSync(path, "utf8");
  assert.equal(source.split(from).length, 2, `${file} contains this once: ${from}`);
  writeFileSync(
    path,
    source.replace(from, () => to),
  );
  return [process.execPath, join(folder, "driver.mjs")];
}

describe("the reference SDK passes", { concurrency: 4 }, () => {
  for (const scenario of SCENARIOS) {
    test(scenario.name, async () => {
      assert.deepEqual(await runScenario(scenario, [process.execPath, join(reference, "driver.mjs")]), []);
    });
  }
});

describe("a broken SDK fails", { concurrency: 4 }, () => {
  for (const [number, change] of BREAKS.entries()) {
    test(`${change.scenario}: ${change.what}`, async () => {
      const reasons = await runScenario(find(change.scenario), broken(number, change));
      assert.notDeepEqual(reasons, [], "the scenario passes although the SDK is broken");
      for (const reason of reasons) assert.doesNotMatch(reason, /the driver ended|no answer|Error:/, reason);
    });
  }

  test("every scenario has a broken SDK that fails it", () => {
    const covered = new Set(BREAKS.map(({ scenario }) => scenario));
    assert.deepEqual(
      SCENARIOS.map(({ name }) => name).filter((name) => !covered.has(name)),
      [],
    );
  });
});

describe("a driver that does not follow the protocol fails", { concurrency: 4 }, () => {
  const run = (code) => runScenario(find("first_launch"), [process.execPath, "-e", code]);
  test("it does not exist", async () => {
    assert.match((await runScenario(find("first_launch"), ["/no/such/driver"]))[0], /did not start/);
  });
  test("it ends", async () => assert.match((await run("process.exit(3)"))[0], /ended \(exit code 3\)/));
  test("it writes no JSON", async () => {
    assert.match((await run("process.stdin.on('data', () => console.log('hello'))"))[0], /not JSON/);
  });
  test("it reports an error", async () => {
    const code = `process.stdin.on('data', () => console.log('{"ok":false,"error":"out of order"}'))`;
    assert.match((await run(code))[0], /out of order/);
  });
});

test("reads the text of each event", () => {
  const body = ' { "a" : [ "]" ] , "events" : [ {"x":"}\\"]"} ,{"y":[1, 2]},3 , "s" ] } ';
  assert.deepEqual(elementTexts(body, "events"), ['{"x":"}\\"]"}', '{"y":[1, 2]}', "3", '"s"']);
  assert.deepEqual(elementTexts("{}", "events"), []);
});

describe("requests are checked strictly", () => {
  const event = { eventId: "e1", name: "a", timestampMs: 1_700_000_000_000, consent: {} };
  const check = (endpoint, body, more = {}) => {
    const request = { method: "POST", contentType: "application/json", key: "k", expectedKey: "k", size: 10 };
    return violations({ endpoint, body, ...request, ...more }).join("; ");
  };
  const events = (change) => check("events", { deviceId: "d", events: [{ ...event, ...change }] });
  const configure = (change) => check("configure", { deviceId: "d", platform: "ios", consent: {}, ...change });
  const cases = [
    ["valid events", () => events({}), /^$/],
    ["valid configure", () => configure({ consent: { tracking: "denied" }, eraseToken: "A".repeat(43) }), /^$/],
    ["a key", () => check("events", { deviceId: "d", events: [event] }, { key: "other" }), /key/],
    [
      "a content type",
      () => check("events", { deviceId: "d", events: [event] }, { contentType: "text/html" }),
      /Content-Type/,
    ],
    ["a size", () => check("events", { deviceId: "d", events: [event] }, { size: 600_000 }), /600000 bytes/],
    ["a body that is not JSON", () => check("events", undefined), /not JSON/],
    ["an endpoint", () => check("track", {}), /not an endpoint/],
    ["an unknown field", () => events({ properties: {} }), /events\[0\]\.properties is not a field/],
    ["an event without id", () => events({ eventId: undefined }), /eventId is required/],
    ["an event without consent", () => events({ consent: undefined }), /consent is required/],
    ["a time in seconds", () => events({ timestampMs: 1_700_000_000 }), /timestampMs/],
    ["a formatted amount", () => events({ revenue: "1,000.00" }), /revenue/],
    ["a currency in lower case", () => events({ currency: "eur" }), /currency/],
    ["a list as params", () => events({ params: [] }), /params/],
    ["an unknown tracking word", () => events({ consent: { tracking: "yes" } }), /tracking/],
    ["an event twice", () => check("events", { deviceId: "d", events: [event, event] }), /twice/],
    ["101 events", () => check("events", { deviceId: "d", events: Array(101).fill(event) }), /1 to 100/],
    ["a platform", () => configure({ platform: "symbian" }), /platform/],
    ["a short token", () => configure({ eraseToken: "abc" }), /eraseToken/],
    ["a clear email", () => check("identify", { deviceId: "d", matching: { email: "a@b.c" } }), /matching\.email/],
  ];
  for (const [name, run, expected] of cases) test(name, () => assert.match(run(), expected));
});
