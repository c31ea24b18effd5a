// Prints the bundle size. Fails if it exceeds the limit, if src/version.ts differs from package.json, or if the package
// has dependencies.

import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

process.chdir(new URL("..", import.meta.url).pathname);

/** Maximum size of all exports, minified and gzipped: 12 kB. */
const LIMIT = 12_288;

const { outputFiles } = await build({
  entryPoints: ["src/index.ts"],
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2020",
  write: false,
});
const code = outputFiles[0].contents;
const size = gzipSync(code, { level: 9 }).length;
console.log(`size: ${size} bytes minified and gzipped (${code.length} minified), of at most ${LIMIT}`);

const { version, dependencies } = JSON.parse(readFileSync("package.json", "utf8"));
const versionMatches = readFileSync("src/version.ts", "utf8").includes(`"ts-${version}"`);
if (size > LIMIT) console.error("the package exceeds the size limit");
if (!versionMatches) console.error("src/version.ts and package.json have different versions");
if (dependencies) console.error("the package must not have runtime dependencies");
process.exit(size > LIMIT || !versionMatches || dependencies ? 1 : 0);
