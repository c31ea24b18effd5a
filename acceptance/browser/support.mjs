// The real server, the real simulator and the machine's own browser.

import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { chromium } from "playwright-core";

const target = resolve("../..", process.env.CARGO_TARGET_DIR ?? "target");
const binary = process.env.TRIBUTARY_BIN ?? join(target, "debug/tributary");
const axe = readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

export const screenshots = process.env.SCREENSHOTS_DIR ?? join(target, "dashboard-screenshots");
export const PASSWORD = "a lazy fox in the coal mine";

function freePort() {
  return new Promise((done, failed) => {
    const probe = createServer();
    probe.once("error", failed);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => done(port));
    });
  });
}

async function until(what, attempt) {
  for (let tries = 0; tries < 300; tries++) {
    const found = await attempt();
    if (found) return found;
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error(`waited in vain for ${what}`);
}

/** Server and simulator, in a folder of their own. */
export class Service {
  static async start() {
    if (!existsSync(binary)) throw new Error(`no binary at ${binary}; cargo build makes it`);
    const service = new Service();
    service.folder = mkdtempSync(join(tmpdir(), "tributary-browser-"));
    const [port, simulatorPort] = [await freePort(), await freePort()];
    service.url = `http://127.0.0.1:${port}`;
    service.simulator = `http://127.0.0.1:${simulatorPort}`;
    // Settings of whoever calls must not reach the server under test.
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("TRIBUTARY_"));
    service.env = {
      ...Object.fromEntries(inherited),
      TRIBUTARY_LISTEN: `127.0.0.1:${port}`,
      TRIBUTARY_DATA_DIR: join(service.folder, "data"),
      TRIBUTARY_RATES__URL: "",
      TRIBUTARY_RATES__SECOND_URL: "",
      TRIBUTARY_NETWORKS__ALLOW_PRIVATE_ADDRESSES: "true",
      TRIBUTARY_NETWORKS__NETWORK_B__TOKEN_URL: `${service.simulator}/token`,
      ...Object.fromEntries(["A", "B", "C", "D"].map((name) => [`TRIBUTARY_NETWORKS__NETWORK_${name}__BASE_URL`, service.simulator])),
    };
    service.children = [
      service.run("simulator", ["simulator", "--listen", `127.0.0.1:${simulatorPort}`]),
      service.run("server", ["serve"]),
    ];
    process.once("exit", () => service.stop());
    await until("the server", () => fetch(`${service.url}/readyz`).then((answer) => answer.ok, () => false));
    return service;
  }

  run(name, command) {
    const log = openSync(join(this.folder, `${name}.log`), "w");
    return spawn(binary, command, { env: this.env, stdio: ["ignore", log, log] });
  }

  /** The one-time link that the server prints as long as nobody has an account. */
  setupLink() {
    return until("the set-up link", () => readFileSync(join(this.folder, "server.log"), "utf8").match(/\/setup\/\w+/)?.[0]);
  }

  /** What a command on the machine prints. */
  command(...words) {
    return execFileSync(binary, words, { env: this.env, encoding: "utf8" }).trim();
  }

  stop() {
    for (const child of this.children ?? []) child.kill("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The browser of this machine. */
export function openBrowser() {
  const places = [process.env.CHROMIUM_BIN, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
  const executablePath = places.find((place) => place && existsSync(place));
  if (!executablePath) throw new Error("no Chromium; install it, or name it in CHROMIUM_BIN");
  return chromium.launch({ executablePath, args: ["--no-sandbox"] });
}

/** Looks at a page in every way: both widths, both colour schemes, and with axe. Gives the faults it found. */
export async function lookAt(page, name) {
  mkdirSync(screenshots, { recursive: true });
  const faults = [];
  for (const width of [1280, 390]) {
    await page.setViewportSize({ width, height: 900 });
    const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    if (wider > 0) faults.push(`${name} at ${width}: ${wider} px wider than the screen`);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.screenshot({ path: join(screenshots, `${name}-${width}-${colorScheme}.png`), fullPage: true });
      // Contrast differs by scheme, everything else by width.
      faults.push(...(await accessibility(page, `${name} at ${width}, ${colorScheme}`)));
    }
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
  return faults;
}

async function accessibility(page, name) {
  // The policy of the pages forbids scripts between tags; the debugger's own evaluation is not bound by it.
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
    return violations
      .filter((one) => one.impact === "serious" || one.impact === "critical")
      .map((one) => `${one.id}: ${one.help} ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
  });
  return found.map((fault) => `${name}: ${fault}`);
}
