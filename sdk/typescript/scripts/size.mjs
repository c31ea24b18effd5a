// Prints how large the package is in an app and fails when that is too much; and when the SDK tells the server another
// version than the package has.

import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

process.chdir(new URL("..", import.meta.url).pathname);

/** 12 kB, minified and gzipped, with everything that the package exports. */
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
const told = readFileSync("src/version.ts", "utf8").includes(`"ts-${version}"`);
if (size > LIMIT) console.error("too large");
if (!told) console.error("src/version.ts names another version than package.json");
if (dependencies) console.error("the package must have no dependencies at run time");
process.exit(size > LIMIT || !told || dependencies ? 1 : 0);
