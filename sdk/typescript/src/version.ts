/** Of this SDK, as the server hears it. The size check compares it with package.json. */
export const VERSION = "ts-1.0.0";
