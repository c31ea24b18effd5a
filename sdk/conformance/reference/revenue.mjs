// Parses amounts as exact decimals (sdk/tables/revenue.json).

const MILLION = 1_000_000n;
/** Twelve digits before the point, six after it. */
const MICROS_MAX = 10n ** 18n - 1n;

/** Returns the amount as the shortest decimal, or null if it is invalid. */
export function decimal(revenue) {
  const micros = typeof revenue === "string" ? fromText(revenue) : fromNumber(revenue);
  if (micros === null || micros > MICROS_MAX || micros < -MICROS_MAX) return null;
  const size = micros < 0n ? -micros : micros;
  const fraction = String(size % MILLION)
    .padStart(6, "0")
    .replace(/0+$/, "");
  return `${micros < 0n ? "-" : ""}${size / MILLION}${fraction && `.${fraction}`}`;
}

function fromText(text) {
  const parts = /^(-?)([0-9]{1,12})(?:\.([0-9]{1,6}))?$/.exec(text);
  if (!parts) return null;
  const size = BigInt(parts[2] + (parts[3] ?? "").padEnd(6, "0"));
  return parts[1] ? -size : size;
}

/** Rounds to six decimals, half to even, because a float such as 9.990000000000002 contains noise. */
function fromNumber(number) {
  if (typeof number !== "number" || !Number.isFinite(number)) return null;
  const [mantissa, exponent = "0"] = String(Math.abs(number)).split("e");
  const [whole, fraction = ""] = mantissa.split(".");
  const shift = Number(exponent) - fraction.length + 6;
  const digits = BigInt(whole + fraction);
  if (shift >= 0) return sign(number, digits * 10n ** BigInt(shift));
  const unit = 10n ** BigInt(-shift);
  const rest = (digits % unit) * 2n;
  const floor = digits / unit;
  return sign(number, rest > unit || (rest === unit && floor % 2n === 1n) ? floor + 1n : floor);
}

const sign = (number, micros) => (number < 0 ? -micros : micros);

/** Returns the currency code in upper case, or null unless it has three letters. */
export function currencyCode(text) {
  return typeof text === "string" && /^[A-Za-z]{3}$/.test(text) ? text.toUpperCase() : null;
}
