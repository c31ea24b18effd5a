// What the tests of optOut, optIn, reset and eraseMe share.

import { Tributary } from "../../src/advanced";
import { memoryStorage } from "../../src/storage";
import type { Options } from "../../src/types";
import type { RecordedRequest } from "./network";
import { Bench } from "./sdk";

export const REFUSED = { adUserData: false, adPersonalization: false };

export const to = (bench: Bench, endpoint: string): RecordedRequest["body"][] =>
  bench.network.requests.filter((request) => request.endpoint === endpoint).map(({ body }) => body);

export const endpoints = (bench: Bench): string[] => bench.network.requests.map(({ endpoint }) => endpoint);

/** Starts the SDK and registers the device. */
export async function registered(bench = new Bench()): Promise<Bench> {
  await bench.configure();
  await bench.clock.pass(0);
  bench.network.requests.length = 0;
  return bench;
}

/** Two tabs of a registered device. */
export async function tabs(more: Partial<Options> = {}): Promise<{ bench: Bench; first: Tributary; second: Tributary }> {
  const bench = await registered(new Bench({ storage: { ...memoryStorage(), shared: true }, ...more }));
  const first = bench.sdk;
  const second = (bench.sdk = new Tributary());
  await bench.configure();
  await bench.clock.pass(10_000);
  bench.network.requests.length = 0;
  return { bench, first, second };
}
