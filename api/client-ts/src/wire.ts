import { FingerpostError, textOf } from "./errors.js";

const maxBody = 64 << 20; // bytes; a batch of 1,000 names has about 2 MiB

const unauthorized = "the server refuses the key (401)";

/** Why the server has said nothing about a name. */
export class Failure extends Error {
  constructor(
    message: string,
    readonly retryAfter = 0,
    readonly unauthorized = false,
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause });
  }

  /** The error of a lookup that the failure leaves without an answer, to be repeated after some milliseconds. */
  asError(retryAfter: number): FingerpostError {
    return this.unauthorized
      ? new FingerpostError("unauthorized", unauthorized, { retryAfter })
      : new FingerpostError("unavailable", `no answer and nothing remembered: ${textOf(this)}`, { cause: this, retryAfter });
  }
}

/** An answer of the server in its envelope. */
export interface Answer {
  status: number;
  headers: Headers;
  code: unknown; // of an error
  data: unknown;
}

/** Sends requests to one server, with the key. */
export class Wire {
  readonly #key: string; // not a plain property: console.log does not show it

  constructor(
    readonly url: string,
    key: string,
    private readonly fetch: typeof globalThis.fetch,
    private readonly now: () => number,
  ) {
    this.#key = key;
  }

  /** Sends a request. An answer that cannot be about a name is a Failure. */
  async send(path: string, signal: AbortSignal, headers: Record<string, string>, body?: string): Promise<Response> {
    let response: Response;
    try {
      const { fetch } = this; // called without an object: workerd refuses any other
      response = await fetch(this.url + path, {
        method: body === undefined ? "GET" : "POST",
        headers: { ...headers, "X-Platform-Key": this.#key },
        redirect: "manual", // no redirect takes the key to another address
        signal,
        ...(body === undefined ? {} : { body }),
      });
    } catch (error) {
      throw failure("the request failed", error, signal);
    }
    const { status } = response;
    let refused: Failure | undefined;
    if (status === 401) refused = new Failure(unauthorized, 0, true);
    else if (status >= 500 || status === 429) {
      refused = new Failure(`the server answers ${status}`, retryAfter(response.headers.get("Retry-After"), this.now()));
    } else if (status === 0 || (status >= 300 && status < 400 && status !== 304)) {
      refused = new Failure(`the server answers with a redirect (${status}): give the final address as url`);
    }
    if (refused === undefined) return response;
    drop(response);
    throw refused;
  }

  /** Sends a request and reads the answer, which is JSON. */
  async ask(path: string, signal: AbortSignal, headers: Record<string, string>, body?: string): Promise<Answer> {
    const response = await this.send(path, signal, { Accept: "application/json", ...headers }, body);
    const answer: Answer = { status: response.status, headers: response.headers, code: undefined, data: undefined };
    const answers = `the server answers ${response.status} with `;
    if (response.status === 304) {
      drop(response);
      return answer;
    }
    if (mediaType(response) !== "application/json") {
      drop(response);
      throw new Failure(`${answers}${mediaType(response)} instead of JSON`);
    }
    let envelope: { success?: unknown; data?: unknown; error?: { code?: unknown } };
    try {
      envelope = JSON.parse(await text(response)) as typeof envelope;
    } catch (error) {
      if (error instanceof SyntaxError) throw new Failure(`${answers}a body that is not JSON`);
      throw failure("reading the answer failed", error, signal);
    }
    if (typeof envelope !== "object" || envelope === null || envelope.success !== (response.status === 200)) {
      throw new Failure(`${answers}a body that is not of this API`);
    }
    answer.data = envelope.data;
    answer.code = envelope.error?.code;
    return answer;
  }
}

/** The failure that an exception of fetch stands for. */
export function failure(step: string, error: unknown, signal: AbortSignal): Failure {
  if (error instanceof Failure) return error;
  const cause: unknown = signal.aborted && signal.reason !== undefined ? signal.reason : error;
  if (cause instanceof Failure) return cause;
  return new Failure(`${step}: ${textOf(cause)}`, 0, false, cause);
}

/** Frees the connection of an answer whose body is not read. */
function drop(response: Response): void {
  void response.body?.cancel().catch(() => undefined);
}

export function mediaType(response: Response): string {
  const [type] = (response.headers.get("Content-Type") ?? "").split(";") as [string];
  return type.trim().toLowerCase() || "no content type";
}

async function text(response: Response): Promise<string> {
  if (response.body === null) return "";
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let all = "";
  for (let size = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return all + decoder.decode();
    size += value.length;
    if (size > maxBody) {
      throw new Failure("the answer is too large");
    }
    all += decoder.decode(value, { stream: true });
  }
}

/** Reads the header of that name, in milliseconds. */
function retryAfter(value: string | null, now: number): number {
  if (value === null) return 0;
  if (/^[0-9]{1,9}$/.test(value)) return Number(value) * 1000;
  const at = Date.parse(value);
  return Number.isNaN(at) ? 0 : Math.max(0, at - now);
}
