import { Client } from "./client.js";
import { eraseMeOf, optInOf, optOutOf, resetOf } from "./control.js";
import { client } from "./default.js";
import { matching, type Matching } from "./matching.js";

function setAdvancedMatchingOf(instance: Client, email?: string | null, phone?: string | null): Promise<void> {
  // Hashed at once, so that a buffered call holds no clear text.
  const hashes = matching(email, phone);
  return instance.call((session) => {
    if (!session.isActive) return;
    if ((email && !hashes.email) || (phone && !hashes.phone)) {
      const message = "Invalid email address or phone number; it was left out.";
      session.onProblem({ code: "invalid_matching", message });
    }
    const known = session.person.matching;
    const names = Object.keys(hashes) as (keyof Matching)[];
    if (names.every((name) => known?.[name] === hashes[name])) return;
    return session.identify({ ...session.person, matching: { ...known, ...hashes } }, { matching: hashes });
  });
}

/** Sets the email address and phone number that ad networks match users by. Only hashes leave the device. */
export const setAdvancedMatching = (email?: string | null, phone?: string | null): Promise<void> =>
  setAdvancedMatchingOf(client, email, phone);

/** The SDK as a class, for more than one instance. */
export class Tributary extends Client {
  /** Sets the email address and phone number that ad networks match users by. Only hashes leave the device. */
  setAdvancedMatching = (email?: string | null, phone?: string | null): Promise<void> =>
    setAdvancedMatchingOf(this, email, phone);
  optOut = (): Promise<void> => optOutOf(this);
  optIn = (): Promise<void> => optInOf(this);
  reset = (): Promise<void> => resetOf(this);
  eraseMe = (): Promise<boolean> => eraseMeOf(this);
}
