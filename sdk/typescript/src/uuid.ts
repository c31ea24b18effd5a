/** Returns bytes from the platform's secure source. Throws without one. */
const secureBytes = (count: number): Uint8Array => crypto.getRandomValues(new Uint8Array(count));

/** Returns a random UUID. Old React Native has no `crypto`; its `Math.random` is seeded by the system. */
export function uuid(): string {
  let bytes: Uint8Array;
  try {
    bytes = secureBytes(16);
  } catch {
    bytes = Uint8Array.from({ length: 16 }, () => Math.random() * 256);
  }
  bytes[6] = (bytes[6]! & 15) | 64;
  bytes[8] = (bytes[8]! & 63) | 128;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** Returns 32 secure random bytes in base64url; undefined without a secure source. */
export function secret(): string | undefined {
  try {
    const text = btoa(String.fromCharCode(...secureBytes(32)));
    return text.replace(/\+/g, "-").replace(/\//g, "_").slice(0, 43);
  } catch {
    return undefined;
  }
}
