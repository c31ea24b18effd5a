// Amounts of money as exact decimals. They are read as the server reads them, so that what the SDK takes the server
// takes too, and never pass through a float that would have to be rounded.

const DECIMALS_MAX = 6;
const INTEGER_DIGITS_MAX = 12;

/** A decimal, shortest form: `9.99`, `-3`, `0.000001`; nothing when it is no amount. */
export function decimal(revenue: unknown): string | null {
  if (typeof revenue === "string") return fromText(revenue);
  return typeof revenue === "number" && Number.isFinite(revenue) ? fromNumber(revenue) : null;
}

/** Digits, a point, digits. No exponent, no sign but a minus, no grouping: what is written is meant. */
function fromText(text: string): string | null {
  const parts = /^(-?)([0-9]{1,12})(?:\.([0-9]{1,6}))?$/.exec(text);
  return parts && shortest(parts[1] === "-", parts[2]!, parts[3] ?? "");
}

/** A number may carry a float's noise (`9.990000000000002`), which is rounded away, half to even. */
function fromNumber(number: number): string | null {
  const [mantissa, exponent] = String(Math.abs(number)).split("e") as [string, string?];
  const [whole, fraction = ""] = mantissa.split(".") as [string, string?];
  const digits = whole + fraction;
  // How many of the digits stand before the sixth decimal.
  const kept = whole.length + Number(exponent ?? 0) + DECIMALS_MAX;
  let micros = kept < 0 ? "" : digits.slice(0, kept).padEnd(kept, "0");
  const dropped = kept < 0 ? "" : digits.slice(kept);
  const half = "5".padEnd(dropped.length, "0");
  const isOdd = /[13579]$/.test(micros);
  if (dropped && (dropped > half || (dropped === half && isOdd))) micros = increment(micros);
  micros = micros.padStart(DECIMALS_MAX + 1, "0");
  const integer = micros.slice(0, -DECIMALS_MAX).replace(/^0+(?=.)/, "");
  if (integer.length > INTEGER_DIGITS_MAX) return null;
  return shortest(number < 0, integer, micros.slice(-DECIMALS_MAX));
}

function increment(digits: string): string {
  const nines = /9*$/.exec(digits)![0].length;
  const rest = digits.slice(0, digits.length - nines) || "0";
  const last = Number(rest.slice(-1)) + 1;
  return rest.slice(0, -1) + last + "0".repeat(nines);
}

function shortest(isNegative: boolean, integer: string, fraction: string): string {
  const digits = fraction.replace(/0+$/, "");
  const amount = integer.replace(/^0+(?=.)/, "") + (digits && `.${digits}`);
  return isNegative && amount !== "0" ? `-${amount}` : amount;
}

/** Three letters in capitals; nothing when it is no currency. */
export function currencyCode(text: unknown): string | null {
  return typeof text === "string" && /^[A-Za-z]{3}$/.test(text) ? text.toUpperCase() : null;
}
