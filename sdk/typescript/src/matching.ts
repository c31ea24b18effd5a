// Normalises and hashes the email address and phone number on the device. There are four variants, because networks
// require different normalisations. Clear text is never sent.

import { sha256 } from "./sha256.js";

/** Hashes, under the server's field names. */
export interface Matching {
  email?: string;
  emailGoogle?: string;
  phone?: string;
  phoneE164?: string;
}

/** Normalised strings before hashing. */
export type Normalised = Matching;

// Unicode white space. JavaScript's `\s` differs in two characters from other implementations of the shared table.
const BLANK = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const OUTER_BLANKS = new RegExp(`^[${BLANK}]+|[${BLANK}]+$`, "g");
const ADDRESS = new RegExp(`^[^${BLANK}@]+@[^${BLANK}@]+\\.[^${BLANK}@]+$`);
const SEPARATORS = new RegExp(`[${BLANK}().-]`, "g");

/** Returns the strings to hash for an email address; empty if it is invalid. */
export function normaliseEmail(input: string): Normalised {
  const email = input.replace(OUTER_BLANKS, "").toLowerCase();
  if (!ADDRESS.test(email)) return {};
  const [local, domain] = email.split("@") as [string, string];
  if (domain !== "gmail.com" && domain !== "googlemail.com") return { email };
  const plain = local.split("+")[0]!.replace(/\./g, "");
  const emailGoogle = `${plain}@${domain}`;
  return plain && emailGoogle !== email ? { email, emailGoogle } : { email };
}

/** Returns the strings to hash for a phone number; empty if it is invalid. */
export function normalisePhone(input: string): Normalised {
  const number = input.replace(SEPARATORS, "");
  if (!/^\+?[0-9]+$/.test(number)) return {};
  const phone = number.replace(/^\+?0*/, "");
  if (phone.length < 8 || phone.length > 15) return {};
  // A single leading zero means a national number without a country code, so there is no E.164 form.
  return /^0(?!0)/.test(number) ? { phone } : { phone, phoneE164: `+${phone}` };
}

/** Returns the hashes of the valid inputs. */
export function matching(email?: string | null, phone?: string | null): Matching {
  const strings: Normalised = {
    ...(typeof email === "string" ? normaliseEmail(email) : {}),
    ...(typeof phone === "string" ? normalisePhone(phone) : {}),
  };
  const hashes: Matching = {};
  for (const name of Object.keys(strings) as (keyof Matching)[]) hashes[name] = sha256(strings[name]!);
  return hashes;
}
