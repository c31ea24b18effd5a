// Parses amounts as exact decimals with the server's rules, so that the server accepts every amount that the SDK
// accepts.

const DECIMALS_MAX = 6;
const INTEGER_DIGITS_MAX = 12;

/** Returns the amount as the shortest decimal, such as `9.99`, `-3` or `0.000001`; null if it is invalid. */
export function decimal(revenue: unknown): string | null {
  if (typeof revenue === "string") return fromText(revenue);
  return typeof revenue === "number" && Number.isFinite(revenue) ? fromNumber(revenue) : null;
}

/** Accepts digits with an optional decimal point and minus sign; no exponent and no grouping. */
function fromText(text: string): string | null {
  const parts = /^(-?)([0-9]{1,12})(?:\.([0-9]{1,6}))?$/.exec(text);
  return parts && shortest(parts[1] === "-", parts[2]!, parts[3] ?? "");
}

/** Rounds a float to six decimals, half to even, which removes float noise as in `9.990000000000002`. */
function fromNumber(number: number): string | null {
  const [mantissa, exponent] = String(Math.abs(number)).split("e") as [string, string?];
  const [whole, fraction = ""] = mantissa.split(".") as [string, string?];
  const digits = whole + fraction;
  // Number of digits up to the sixth decimal.
  const keep = whole.length + Number(exponent ?? 0) + DECIMALS_MAX;
  let micros = keep < 0 ? "" : digits.slice(0, keep).padEnd(keep, "0");
  const dropped = keep < 0 ? "" : digits.slice(keep);
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

/** Returns the currency code in capitals; null unless it has three letters. */
export function currencyCode(text: unknown): string | null {
  return typeof text === "string" && /^[A-Za-z]{3}$/.test(text) ? text.toUpperCase() : null;
}
