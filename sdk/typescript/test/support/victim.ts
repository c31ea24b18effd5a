// A process to be killed: it tracks events, prints its progress, and waits. Arguments: folder, URL, key, prefix,
// network mode.

import { Tributary } from "../../src/advanced";
import { fileStorage } from "./files";
import { Network, type NetworkMode } from "./network";

const [folder, baseUrl, key, prefix, mode] = process.argv.slice(2) as [string, string, string, string, NetworkMode];

const network = new Network();
network.mode = mode;
// Register the device first; only the responses to events are lost.
if (mode === "lost") network.script = ["fine"];
const sdk = new Tributary();
void sdk.configure({
  key,
  baseUrl,
  storage: fileStorage(folder),
  device: { platform: "android" },
  fetch: network.fetch,
  flushDelayMs: 0,
  logLevel: "none",
});
for (let number = 1; number <= 5; number++) void sdk.trackEvent(`${prefix}${number}`, { number });
// No promise was awaited; at this point, the calls have only returned.
process.stdout.write("tracked\n");
// A second attempt means that the first request arrived and its response was lost.
setInterval(() => process.stdout.write(network.count("events") > 1 ? "sent\n" : ""), 5);
