import type { Consent, Maybe } from "./types.js";
import { then, type Vault } from "./vault.js";

/** The record's name; earlier versions of the SDK stored the consent under it. */
const KEY = "consent";

/** The stored consent, and whether recording is stopped. */
export interface PrivacyRecord extends Consent {
  /** Why recording is stopped: the user opted out, or asked for erasure. */
  stop?: "out" | "erased" | undefined;
}

/** The consent in force. All tabs share it. */
export class Privacy {
  record: PrivacyRecord = {};
  /** The last storage operation. They run in the order of the calls, also with an asynchronous storage. */
  private last: Maybe<unknown>;

  constructor(private readonly vault: Vault) {}

  /** Reads the stored record. A failed read keeps the known one, so that a refusal is not forgotten. */
  load(): Maybe<PrivacyRecord> {
    return this.next(() =>
      then(this.vault.read<PrivacyRecord>(KEY), (stored) => (this.record = stored ?? this.record)),
    );
  }

  /** Returns the record in force now. Another tab may have changed it. */
  current(): Maybe<PrivacyRecord> {
    return this.vault.shared ? this.load() : this.record;
  }

  /** Changes the record and stores it. */
  change(make: (record: PrivacyRecord) => PrivacyRecord): Maybe<void> {
    const store = (): Maybe<void> => this.vault.write(KEY, this.record);
    if (!this.vault.shared) {
      this.record = make(this.record);
      return this.next(store);
    }
    return this.next(() =>
      then(this.vault.read<PrivacyRecord>(KEY), (stored) => {
        this.record = make(stored ?? this.record);
        return store();
      }),
    );
  }

  /** Sets the given fields of the consent. */
  set(consent: Consent): Maybe<void> {
    const given = Object.entries(consentOf(consent)).filter(([, value]) => value !== undefined && value !== null);
    return this.change((record) => ({ ...record, ...Object.fromEntries(given) }));
  }

  private next<T>(run: () => Maybe<T>): Maybe<T> {
    const done = then(this.last, run);
    this.last = done;
    return done;
  }
}

/** Returns only the consent, as it is sent. */
export const consentOf = ({ adUserData, adPersonalization, tracking }: Consent): Consent =>
  ({ adUserData, adPersonalization, tracking }) as Consent;

/** Returns whether the user refuses any use. */
export const isRefusal = ({ adUserData, adPersonalization, tracking }: Consent): boolean =>
  adUserData === false || adPersonalization === false || tracking === "denied" || tracking === "restricted";
