// Runs the tests: node scripts/test.mjs [NAME…], such as `tables` or `browser`. They are bundled first, because Node 20
// cannot run TypeScript.

import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { build } from "esbuild";

process.chdir(new URL("..", import.meta.url).pathname);

const wanted = process.argv.slice(2);
const names = readdirSync("test")
  .filter((file) => file.endsWith(".test.ts"))
  .map((file) => file.slice(0, -".test.ts".length))
  .filter((name) => wanted.length === 0 || wanted.includes(name));

await build({
  entryPoints: [...names.map((name) => `test/${name}.test.ts`), "test/support/victim.ts"],
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node20",
  packages: "external",
  sourcemap: "inline",
  outdir: "dist/test",
  outbase: "test",
  logLevel: "warning",
});

const files = names.map((name) => `dist/test/${name}.test.js`);
const options = ["--enable-source-maps", "--test", "--test-reporter=spec", "--test-timeout=100000"];
const { status } = spawnSync(process.execPath, [...options, ...files], { stdio: "inherit" });
process.exit(status ?? 1);
