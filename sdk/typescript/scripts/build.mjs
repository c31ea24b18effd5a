// Builds dist/: ES modules, CommonJS, a minified file for a script element, and type declarations for both kinds.

import { execFileSync } from "node:child_process";
import { copyFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { build } from "esbuild";
import { INTERNAL } from "./internal.mjs";

process.chdir(new URL("..", import.meta.url).pathname);
rmSync("dist", { recursive: true, force: true });

const sources = readdirSync("src").filter((file) => file !== "global.ts");
// All builds share the short names, because an app may load more than one.
let mangleCache = {};
const run = async (options) => {
  const result = await build({ target: "es2020", logLevel: "warning", mangleProps: INTERNAL, mangleCache, ...options });
  mangleCache = result.mangleCache;
};
// One file per module, so that bundlers leave out what an app does not use.
await run({ entryPoints: sources.map((file) => `src/${file}`), format: "esm", outdir: "dist" });
await run({ entryPoints: ["src/index.ts"], bundle: true, format: "cjs", outfile: "dist/index.cjs" });
await run({ entryPoints: ["src/global.ts"], bundle: true, format: "iife", minify: true, outfile: "dist/tributary.js" });
copyFileSync("dist/tributary.js", "dist/tributary.cjs");

const types = ["--noEmit", "false", "--declaration", "--emitDeclarationOnly", "--stripInternal"];
const folders = ["--project", "tsconfig.build.json", "--rootDir", "src", "--outDir", "dist"];
execFileSync("node_modules/.bin/tsc", [...folders, ...types], { stdio: "inherit" });
for (const file of readdirSync("dist").filter((name) => name.endsWith(".d.ts"))) {
  const text = readFileSync(`dist/${file}`, "utf8").replace(/(["'])(\.\/[\w-]+)\.js\1/g, "$1$2.cjs$1");
  writeFileSync(`dist/${file.replace(/\.d\.ts$/, ".d.cts")}`, text);
}
