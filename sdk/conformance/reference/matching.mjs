// Normalises and hashes email addresses and phone numbers (sdk/tables/matching.json).

import { createHash } from "node:crypto";

const BLANK = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const OUTER_BLANKS = new RegExp(`^[${BLANK}]+|[${BLANK}]+$`, "g");
const ADDRESS = new RegExp(`^[^${BLANK}@]+@[^${BLANK}@]+\\.[^${BLANK}@]+$`);
const SEPARATORS = new RegExp(`[${BLANK}().-]`, "g");

function normaliseEmail(input) {
  const email = input.replace(OUTER_BLANKS, "").toLowerCase();
  if (!ADDRESS.test(email)) return {};
  const [local, domain] = email.split("@");
  if (domain !== "gmail.com" && domain !== "googlemail.com") return { email };
  const plain = local.split("+")[0].replaceAll(".", "");
  const emailGoogle = `${plain}@${domain}`;
  return plain && emailGoogle !== email ? { email, emailGoogle } : { email };
}

function normalisePhone(input) {
  const number = input.replace(SEPARATORS, "");
  if (!/^\+?[0-9]+$/.test(number)) return {};
  const phone = number.replace(/^\+?0*/, "");
  if (phone.length < 8 || phone.length > 15) return {};
  // A single leading zero means a national number, which has no E.164 form.
  return /^0(?!0)/.test(number) ? { phone } : { phone, phoneE164: `+${phone}` };
}

/** Returns the hashes of the valid inputs. */
export function matching(email, phone) {
  const strings = { ...(email ? normaliseEmail(email) : {}), ...(phone ? normalisePhone(phone) : {}) };
  const hash = (text) => createHash("sha256").update(text).digest("hex");
  return Object.fromEntries(Object.entries(strings).map(([name, text]) => [name, hash(text)]));
}
