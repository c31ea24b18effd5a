/** SDK version as sent to the server, which is the version of the release. */
export const VERSION = "ts-0.1.0";
