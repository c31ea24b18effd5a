/** SDK version as sent to the server. The size check compares it with package.json. */
export const VERSION = "ts-1.0.0";
