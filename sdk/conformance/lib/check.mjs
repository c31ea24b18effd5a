// The protocol's request formats (docs/SDK-PROTOCOL.md). Each check returns a list of violations. The server accepts
// more than this: it ignores unknown fields and unreadable optional ones. An SDK must not rely on that.

import { depthOf } from "./json.mjs";

/** Maximum bytes of a request body. The server's limit is 1 MiB; SDKs stay below 500 KiB. */
export const BODY_BYTES_MAX = 512_000;
export const BATCH_EVENTS_MAX = 100;
const PARAMS_BYTES_MAX = 16_384;
const PARAMS_DEPTH_MAX = 32;
const ID_BYTES_MAX = 255;
const NAME_CHARS_MAX = 255;
/** 2015-01-01: the server rejects earlier times. */
const EARLIEST_MS = 1_420_070_400_000;

const bytes = (text) => Buffer.byteLength(text, "utf8");
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

const text = (value) => (typeof value === "string" ? undefined : "must be a string");
const boolean = (value) => (typeof value === "boolean" ? undefined : "must be true or false");
const number = (value) => (typeof value === "number" ? undefined : "must be a number");
const integer = (value) => (Number.isInteger(value) ? undefined : "must be an integer");
const oneOf =
  (...words) =>
  (value) =>
    words.includes(value) ? undefined : `must be one of ${words.join(", ")}`;
const matches = (pattern, about) => (value) =>
  typeof value === "string" && pattern.test(value) ? undefined : `must be ${about}`;
const limited = (max) => (value) => {
  if (typeof value !== "string") return "must be a string";
  return bytes(value) <= max ? undefined : `must have at most ${max} bytes`;
};
const id = (value) => {
  if (typeof value !== "string" || value === "") return "must be a non-empty string";
  if (value.includes("\0")) return "must not contain NUL";
  return bytes(value) <= ID_BYTES_MAX ? undefined : `must have at most ${ID_BYTES_MAX} bytes`;
};
const userId = (value) => (value === "" ? undefined : id(value));
const eventName = (value) => {
  if (typeof value !== "string" || value === "" || value.includes("\0"))
    return "must be a non-empty string without NUL";
  return [...value].length <= NAME_CHARS_MAX ? undefined : `must have at most ${NAME_CHARS_MAX} characters`;
};
const time = (value) =>
  Number.isInteger(value) && value >= EARLIEST_MS ? undefined : "must be milliseconds since 1970, not before 2015";
const amount = (value) => {
  if (typeof value === "number") return undefined;
  return /^-?[0-9]{1,12}(\.[0-9]{1,6})?$/.test(value) ? undefined : "must be a number or a decimal string";
};
const params = (value) => {
  if (!isObject(value)) return "must be an object";
  if (bytes(JSON.stringify(value)) > PARAMS_BYTES_MAX) return `must have at most ${PARAMS_BYTES_MAX} bytes as JSON`;
  return depthOf(value) <= PARAMS_DEPTH_MAX ? undefined : `must be nested at most ${PARAMS_DEPTH_MAX} levels deep`;
};
const hash = matches(/^[0-9a-f]{64}$/, "64 hexadecimal digits in lower case");

/** Checks an object: `fields` maps a name to its check; names that start with `!` are required. */
function shape(fields) {
  return (value, path = "") => {
    if (!isObject(value)) return [`${path || "body"} must be an object`];
    const known = new Map(Object.entries(fields).map(([name, check]) => [name.replace("!", ""), { name, check }]));
    const found = [];
    for (const { name } of known.values()) {
      const plain = name.replace("!", "");
      if (name !== plain && (value[plain] === undefined || value[plain] === null)) {
        found.push(`${path}${plain} is required`);
      }
    }
    for (const [name, member] of Object.entries(value)) {
      const field = known.get(name);
      if (!field) found.push(`${path}${name} is not a field of the protocol`);
      // Null means absent.
      else if (member !== null) {
        const problem = field.check(member, `${path}${name}.`);
        if (Array.isArray(problem)) found.push(...problem);
        else if (problem) found.push(`${path}${name} ${problem}`);
      }
    }
    return found;
  };
}

const consent = shape({
  adUserData: boolean,
  adPersonalization: boolean,
  tracking: oneOf("authorized", "denied", "notDetermined", "restricted"),
});
const eraseToken = matches(/^[A-Za-z0-9_-]{43}$/, "32 random bytes in base64url (43 characters)");

const configure = shape({
  "!deviceId": id,
  "!platform": oneOf("ios", "android", "web"),
  osVersion: text,
  model: text,
  manufacturer: text,
  appVersion: text,
  bundleId: text,
  locale: text,
  timezone: text,
  sdkVersion: text,
  screen: shape({ "!width": number, "!height": number, "!scale": number }),
  userId,
  userIdSignature: text,
  idfa: text,
  gaid: text,
  idfv: text,
  arClickId: limited(500),
  openedUrl: text,
  userAgent: text,
  adServicesToken: limited(4_096),
  installReferrer: shape({
    referrer: text,
    clickAtSeconds: integer,
    installBeginAtSeconds: integer,
    clickAtServerSeconds: integer,
    installBeginAtServerSeconds: integer,
  }),
  "!consent": consent,
  eraseToken,
  attestation: shape({
    "!type": oneOf("app_attest", "play_integrity"),
    "!token": text,
    keyId: text,
    "!challenge": text,
  }),
});

const event = shape({
  "!eventId": id,
  "!name": eventName,
  timestampMs: time,
  revenue: amount,
  currency: matches(/^[A-Z]{3}$/, "a three-letter code in upper case"),
  params,
  "!consent": consent,
});

const batch = shape({
  "!deviceId": id,
  "!events": (value) => {
    if (!Array.isArray(value)) return "must be a list";
    if (value.length < 1 || value.length > BATCH_EVENTS_MAX) return `must contain 1 to ${BATCH_EVENTS_MAX} events`;
    const ids = value.map((one) => one?.eventId);
    const twice = ids.filter((one, at) => ids.indexOf(one) !== at).map((one) => `events has ${one} twice`);
    return [...twice, ...value.flatMap((one, at) => event(one, `events[${at}].`))];
  },
});

const identify = shape({
  "!deviceId": id,
  userId,
  userIdSignature: text,
  matching: shape({ email: hash, emailGoogle: hash, phone: hash, phoneE164: hash }),
});

const BODIES = {
  configure,
  events: batch,
  identify,
  erase: shape({ "!deviceId": id, "!eraseToken": eraseToken }),
  "attestation-challenge": shape({ "!deviceId": id }),
};

/** Returns the violations in a request. `body` is the parsed body, undefined if it is not JSON. */
export function violations({ endpoint, method, contentType, key, expectedKey, body, size }) {
  const found = [];
  if (key !== expectedKey) found.push(`the key is ${JSON.stringify(key)}; send it as X-Tributary-Key or ?key=`);
  if (endpoint === "skan") {
    if (method !== "GET") found.push(`the method is ${method}, not GET`);
    return found;
  }
  const check = BODIES[endpoint];
  if (!check) return [`/api/track/${endpoint} is not an endpoint`];
  if (method !== "POST") found.push(`the method is ${method}, not POST`);
  if (!/^(application\/json|text\/plain)\b/i.test(contentType ?? "")) {
    found.push(`Content-Type is ${contentType}, not application/json or text/plain`);
  }
  if (size > BODY_BYTES_MAX) found.push(`the body has ${size} bytes, more than ${BODY_BYTES_MAX}`);
  if (body === undefined) found.push("the body is not JSON in UTF-8");
  else found.push(...check(body));
  return found;
}
