/** The reasons why a lookup has no tenant. The first five are answers of the server about the name. */
export type Code =
  | "unknown"
  | "invalid"
  | "notVerified"
  | "suspended"
  | "forbidden"
  | "unauthorized"
  | "unavailable"
  | "cancelled";

/** The error of a lookup. `code` says why; `cause` has what went wrong on the way to the server. */
export class FingerpostError extends Error {
  override readonly name = "FingerpostError";
  readonly code: Code;
  /** Milliseconds until the server is asked again, for `unauthorized` and `unavailable`. */
  readonly retryAfter: number;

  constructor(code: Code, message: string, options: { cause?: unknown; retryAfter?: number } = {}) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.code = code;
    this.retryAfter = options.retryAfter ?? 0;
  }
}

/** Reports whether an error says something about a name. @internal */
export function isAnswer(error: FingerpostError): boolean {
  return error.code !== "unauthorized" && error.code !== "unavailable" && error.code !== "cancelled";
}

/** @internal */
export function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error && error.cause.message !== "" ? `: ${error.cause.message}` : "";
  return error.message + cause;
}
