interface RandomSource {
  getRandomValues?(bytes: Uint8Array): Uint8Array;
}

/** Returns a random UUID. React Native has no `crypto`; its `Math.random` is seeded by the system. */
export function uuid(): string {
  const bytes = new Uint8Array(16);
  const source = (globalThis as { crypto?: RandomSource }).crypto;
  if (source?.getRandomValues) source.getRandomValues(bytes);
  else for (let i = 0; i < 16; i++) bytes[i] = Math.floor(Math.random() * 256);
  bytes[6] = (bytes[6]! & 15) | 64;
  bytes[8] = (bytes[8]! & 63) | 128;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}
