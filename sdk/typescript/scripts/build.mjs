// Builds dist/: ES module, CommonJS, a minified file for a script element, and type declarations.

import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { build } from "esbuild";

process.chdir(new URL("..", import.meta.url).pathname);
rmSync("dist", { recursive: true, force: true });

const common = { entryPoints: ["src/index.ts"], bundle: true, target: "es2020", logLevel: "warning" };
await build({ ...common, format: "esm", outfile: "dist/index.js" });
await build({ ...common, format: "cjs", outfile: "dist/index.cjs" });
await build({ ...common, format: "iife", globalName: "Tributary", minify: true, outfile: "dist/tributary.js" });

const types = ["--noEmit", "false", "--declaration", "--emitDeclarationOnly", "--rootDir", "src", "--outDir", "dist"];
const sources = ["--project", "tsconfig.build.json"];
execFileSync("node_modules/.bin/tsc", [...sources, ...types], { stdio: "inherit" });
