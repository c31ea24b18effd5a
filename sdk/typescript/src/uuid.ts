interface RandomSource {
  getRandomValues?(bytes: Uint8Array): Uint8Array;
}

/** Returns a random UUID. React Native has no `crypto`; its `Math.random` is seeded by the system. */
export function uuid(): string {
  const bytes = new Uint8Array(16);
  const source = (globalThis as { crypto?: RandomSource }).crypto;
  if (source?.getRandomValues) source.getRandomValues(bytes);
  else bytes.forEach((_, i) => (bytes[i] = Math.random() * 256));
  bytes[6] = (bytes[6]! & 15) | 64;
  bytes[8] = (bytes[8]! & 63) | 128;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/**
 * Returns a secret of 162 random bits that reads as 32 bytes in base64url. It uses only hex digits, which saves an
 * encoder. The last character encodes four bits and two zeros, as `0` does.
 */
export const secret = (): string => `${(uuid() + uuid()).replace(/-/g, "").slice(0, 42)}0`;
