// Prints the sizes of imports from the built package, minified and gzipped. Fails over a limit.

import { gzipSync } from "node:zlib";
import { build } from "esbuild";

process.chdir(new URL("..", import.meta.url).pathname);

const USUAL = [
  "configure, trackEvent, setConsent, setUserId, setGlobalParams, getAttribution, getDeviceId, getClickId, openUrl",
  "flush, shutdown",
].join(", ");

/** Import, and its maximum in bytes: 9 kB (of 1,024 bytes) for a usual web page, 14 kB for everything. */
const IMPORTS = [
  ["usual import", `{ ${USUAL} }`, 9 * 1_024],
  ["everything", "*", 14 * 1_024],
  ["memoryStorage alone", "{ memoryStorage }", 256],
];

let isTooLarge = false;
const parts = [];
for (const [name, exported, limit] of IMPORTS) {
  const { outputFiles } = await build({
    stdin: { contents: `export ${exported} from "tributary-sdk";`, resolveDir: "." },
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2020",
    write: false,
    // Resolves the package by its own name, with its `exports` and `sideEffects`.
    packages: "bundle",
  });
  const size = gzipSync(outputFiles[0].contents, { level: 9 }).length;
  parts.push(`${name} ${size} of ${limit}`);
  isTooLarge ||= size > limit;
}
console.log(`size in bytes, minified and gzipped: ${parts.join("; ")}`);
if (isTooLarge) console.error("the package exceeds a size limit");
process.exit(isTooLarge ? 1 : 0);
