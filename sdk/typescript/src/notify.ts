import type { Options, Problem } from "./types.js";

/** Returns the function that reports problems to the app and to the console. */
export function reporter({ logLevel, onProblem }: Options): (problem: Problem) => void {
  return (problem) => {
    if (logLevel !== "none" && typeof console !== "undefined") console.warn(`Tributary: ${problem.message}`);
    notify(onProblem, problem);
  };
}

/** Calls one of the app's callbacks. Its exceptions do not reach the SDK. */
export function notify<T>(callback: ((value: T) => void) | undefined, value: T): void {
  try {
    callback?.(value);
  } catch (error) {
    if (typeof console !== "undefined") console.error("Tributary: an app callback failed.", error);
  }
}
