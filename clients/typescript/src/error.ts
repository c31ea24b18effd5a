/** Errors of the API. */

/** A faulty field of a request. */
export interface FieldError {
  field: string;
  code: string;
  message: string;
}

/** The server answered with an error. */
export class TributaryError extends Error {
  override readonly name = "TributaryError";

  constructor(
    /** HTTP status. */
    readonly status: number,
    /** Code for programs, which never changes; `unexpected_response` if the answer is not of the API. */
    readonly code: string,
    /** Message for people. */
    message: string,
    /** The faulty fields. */
    readonly fields: readonly FieldError[],
    /** Whether the same request can succeed later. */
    readonly retryable: boolean,
    /** Id of the request in the server's log. */
    readonly requestId: string | null,
  ) {
    super(message);
  }

  /** Reads an error from a response. */
  static async read(response: Response): Promise<TributaryError> {
    const { status } = response;
    const requestId = response.headers.get("X-Request-Id");
    const text = await response.text();
    try {
      const { code, message, details, retryable } = JSON.parse(text).error;
      if (typeof code === "string" && typeof message === "string") {
        return new TributaryError(status, code, message, details ?? [], retryable === true, requestId);
      }
    } catch {
      // A proxy's page, for example.
    }
    const message = `the server answered ${status} without an error of the API`;
    return new TributaryError(status, "unexpected_response", message, [], status >= 500, requestId);
  }
}
