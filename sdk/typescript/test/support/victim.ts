// A process that is killed: it tracks events, says so, and waits for its end. Arguments: folder, URL, key, prefix,
// what to do about the network.

import { Tributary } from "../../src/tributary";
import { fileStorage } from "./files";
import { Network, type Mood } from "./network";

const [folder, baseUrl, key, prefix, mood] = process.argv.slice(2) as [string, string, string, string, Mood];

const network = new Network();
network.mood = mood;
// Its device is registered; what is lost are the answers to events.
if (mood === "lost") network.script = ["fine"];
const sdk = new Tributary();
void sdk.configure({
  key,
  baseUrl,
  storage: fileStorage(folder),
  device: { platform: "android" },
  fetch: network.fetch,
  flushDelayMs: 0,
});
for (let number = 1; number <= 5; number++) void sdk.trackEvent(`${prefix}${number}`, { number });
// Nothing was awaited: what is said here is that the calls have returned.
process.stdout.write("tracked\n");
// The second attempt: the first has arrived, and nobody heard.
setInterval(() => process.stdout.write(network.count("events") > 1 ? "sent\n" : ""), 5);
