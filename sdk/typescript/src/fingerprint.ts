/** Returns a 32-bit hash (FNV-1a), to recognise a text that is not stored. Not for security: `sha256` is. */
export function fingerprint(text: string): string {
  let hash = 0x811c9dc5;
  for (const character of text) hash = Math.imul(hash ^ character.codePointAt(0)!, 0x01000193);
  return hash.toString(36);
}
