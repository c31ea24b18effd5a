import { CONSENT } from "./consent.mjs";
import { DELIVERY } from "./delivery.mjs";
import { ERRORS } from "./errors.mjs";
import { LIMITS } from "./limits.mjs";
import { PERSON } from "./person.mjs";
import { RIGHTS } from "./rights.mjs";
import { TABLES } from "./tables.mjs";

/** All scenarios: `name`, `requires` (one sentence) and `run`. */
export const SCENARIOS = [...DELIVERY, ...ERRORS, ...LIMITS, ...CONSENT, ...PERSON, ...RIGHTS, ...TABLES];
