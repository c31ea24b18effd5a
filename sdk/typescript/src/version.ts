/** SDK version as sent to the server. The package check compares it with package.json and the server. */
export const VERSION = "ts-0.1.0";
