#!/usr/bin/env node
// Runs the conformance scenarios against an SDK's driver. See README.md.

import { availableParallelism } from "node:os";
import { runScenario } from "./lib/scenario.mjs";
import { SCENARIOS } from "./scenarios/index.mjs";

const USAGE = `usage: node run.mjs [--list] [--only NAME,…] [--jobs N] -- DRIVER COMMAND

  --list        prints the scenarios and what each requires
  --only        runs only these scenarios
  --jobs        number of scenarios that run at once (default: number of cores, at most 4)`;

function fail(message) {
  console.error(`${message}\n${USAGE}`);
  process.exit(2);
}

function readArguments(all) {
  const end = all.indexOf("--");
  const own = end < 0 ? all : all.slice(0, end);
  const options = { command: end < 0 ? [] : all.slice(end + 1), jobs: Math.min(4, availableParallelism()) };
  for (let at = 0; at < own.length; at++) {
    if (own[at] === "--list") options.list = true;
    else if (own[at] === "--only") options.only = (own[++at] ?? "").split(",");
    else if (own[at] === "--jobs") options.jobs = Math.max(1, Number(own[++at]) || 1);
    else fail(`unknown option: ${own[at]}`);
  }
  return options;
}

const options = readArguments(process.argv.slice(2));
const unknown = (options.only ?? []).filter((name) => !SCENARIOS.some((one) => one.name === name));
if (unknown.length > 0) fail(`unknown scenario: ${unknown.join(", ")}`);
const chosen = SCENARIOS.filter(({ name }) => options.only?.includes(name) ?? true);

if (options.list) {
  for (const { name, requires } of chosen) console.log(`${name}: ${requires}`);
  process.exit(0);
}
if (options.command.length === 0) fail("the driver command is missing");

const begun = Date.now();
const results = new Array(chosen.length);
let next = 0;
let printed = 0;
let passed = 0;

/** Prints the results in the order of the list, as soon as they are known. */
function print() {
  for (; results[printed]; printed++) {
    const { name, requires } = chosen[printed];
    const { reasons, ms } = results[printed];
    if (reasons.length === 0) passed++;
    console.log(`${reasons.length === 0 ? "✔" : "✖"} ${name} (${ms}ms)`);
    if (reasons.length > 0) console.log(`  required: ${requires}`);
    for (const reason of reasons) console.log(`  ${reason.replaceAll("\n", "\n  ")}`);
  }
}

async function work() {
  while (next < chosen.length) {
    const at = next++;
    const start = Date.now();
    const reasons = await runScenario(chosen[at], options.command);
    results[at] = { reasons, ms: Date.now() - start };
    print();
  }
}

await Promise.all(Array.from({ length: options.jobs }, work));
const failed = chosen.length - passed;
console.log(`\n${passed} passed, ${failed} failed, ${((Date.now() - begun) / 1000).toFixed(1)} s`);
process.exit(failed === 0 ? 0 : 1);
