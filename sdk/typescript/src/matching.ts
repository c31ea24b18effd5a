// E-mail address and phone number, normalised and hashed on the device. The networks disagree on what is to be
// hashed, hence four variants. Clear text stays here.

import { sha256 } from "./sha256.js";

/** The hashes, under the names that the server takes. */
export interface Matching {
  email?: string;
  emailGoogle?: string;
  phone?: string;
  phoneE164?: string;
}

/** What is hashed. */
export type Normalised = Matching;

// Unicode's white space. JavaScript's own `\s` differs in two characters, and other languages' tables would disagree.
const BLANK = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const OUTER_BLANKS = new RegExp(`^[${BLANK}]+|[${BLANK}]+$`, "g");
const ADDRESS = new RegExp(`^[^${BLANK}@]+@[^${BLANK}@]+\\.[^${BLANK}@]+$`);
const SEPARATORS = new RegExp(`[${BLANK}().-]`, "g");

/** The strings to hash for an e-mail address; nothing when it is none. */
export function normaliseEmail(input: string): Normalised {
  const email = input.replace(OUTER_BLANKS, "").toLowerCase();
  if (!ADDRESS.test(email)) return {};
  const [local, domain] = email.split("@") as [string, string];
  if (domain !== "gmail.com" && domain !== "googlemail.com") return { email };
  const plain = local.split("+")[0]!.replace(/\./g, "");
  const emailGoogle = `${plain}@${domain}`;
  return plain && emailGoogle !== email ? { email, emailGoogle } : { email };
}

/** The strings to hash for a phone number; nothing when it is none. */
export function normalisePhone(input: string): Normalised {
  const number = input.replace(SEPARATORS, "");
  if (!/^\+?[0-9]+$/.test(number)) return {};
  const phone = number.replace(/^\+?0*/, "");
  if (phone.length < 8 || phone.length > 15) return {};
  // One zero in front is how a number is dialled inside its country: which one, nobody knows.
  return /^0(?!0)/.test(number) ? { phone } : { phone, phoneE164: `+${phone}` };
}

/** The hashes of whatever of the two can be read. */
export function matching(email?: string | null, phone?: string | null): Matching {
  const strings: Normalised = {
    ...(typeof email === "string" ? normaliseEmail(email) : {}),
    ...(typeof phone === "string" ? normalisePhone(phone) : {}),
  };
  const hashes: Matching = {};
  for (const name of Object.keys(strings) as (keyof Matching)[]) hashes[name] = sha256(strings[name]!);
  return hashes;
}
