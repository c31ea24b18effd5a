// Runs one scenario: a fresh fault server, a fresh storage directory, and the drivers that the scenario starts.

import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Driver } from "./driver.mjs";
import { FaultServer } from "./server.mjs";

/** The time at which scenarios start, by the drivers' clocks. */
export const START_MS = Date.UTC(2026, 0, 15, 12);

export class Scenario {
  server = new FaultServer();
  #command;
  #drivers = [];
  #storage = mkdtempSync(join(tmpdir(), "tributary-conformance-"));

  constructor(command) {
    this.#command = command;
  }

  /** Starts a driver process. All of a scenario's drivers share one storage directory. */
  start() {
    const driver = new Driver(this.#command, this.#storage, this.server.url);
    this.#drivers.push(driver);
    return driver;
  }

  /** Starts a driver and configures the SDK. */
  async open(options = {}) {
    const driver = this.start();
    await driver.configure({ now: START_MS, ...options });
    return driver;
  }

  /** Starts a driver, configures the SDK, and waits until the device is registered. */
  async register(options = {}) {
    const driver = await this.open(options);
    await driver.flush();
    assert.equal(this.server.to("configure").length, 1, "the first start sends configure once");
    return driver;
  }

  /** Asserts that the server accepted exactly these events, in this order. */
  assertArrived(ids) {
    const found = this.server.events.map(({ eventId }) => eventId);
    assert.deepEqual(found, ids, "the accepted events are the tracked ones, in order");
  }

  /** Asserts that a text occurs neither on the wire nor in the storage. */
  assertUnseen(text) {
    for (const { endpoint, text: body } of this.server.requests) {
      assert.ok(!body.includes(text), `${endpoint} contains ${text}`);
    }
    for (const path of readdirSync(this.#storage, { recursive: true, withFileTypes: true })) {
      if (!path.isFile()) continue;
      const stored = readFileSync(join(path.parentPath ?? path.path, path.name));
      assert.ok(!stored.includes(text), `the storage contains ${text}`);
    }
  }

  async finish() {
    await Promise.all(this.#drivers.map((driver) => driver.kill()));
    this.server.stop();
    rmSync(this.#storage, { recursive: true, force: true });
  }
}

/** Runs a scenario. Returns the reasons why it failed; empty if it passed. */
export async function runScenario({ run }, command) {
  const scenario = new Scenario(command);
  await scenario.server.start();
  const reasons = [];
  try {
    await run(scenario);
  } catch (error) {
    reasons.push(error.message);
  } finally {
    await scenario.finish();
  }
  return [...reasons, ...summary(scenario.server.violations)];
}

/** Returns the different violations, at most ten. Events of a batch usually have the same ones. */
function summary(violations) {
  const different = [...new Set(violations.map((one) => one.replace(/events\[\d+\]/, "events[]")))];
  return different.slice(0, 10).map((one) => `protocol violation: ${one}`);
}
