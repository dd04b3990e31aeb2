import type { operations, paths } from "./openapi.js";

export type { components, operations, paths } from "./openapi.js";

/** The name of a call, which is its operationId in openapi.yaml. */
export type Call = keyof operations;

type Method = "get" | "put" | "post" | "delete";
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;

/** The method and path of a call, such as "GET /api/platform/projects". */
export type Route<C extends Call> = {
  [P in keyof paths & string]: {
    [M in Method]: paths[P] extends { [K in M]: infer O } ? (Same<O, operations[C]> extends true ? `${Uppercase<M>} ${P}` : never) : never;
  }[Method];
}[keyof paths & string];

type Parameters<C extends Call> = operations[C]["parameters"];
type Content<T> = T extends { content: infer B } ? (B extends { "application/json": infer J } ? J : never) : never;
type Body<C extends Call> = operations[C] extends { requestBody?: infer B } ? Content<NonNullable<B>> : never;
type Responses<C extends Call> = operations[C]["responses"];

/** The envelope with which a call that succeeds is answered. */
export type Answer<C extends Call> = {
  [S in keyof Responses<C>]: S extends 200 | 201 | 202 ? Content<Responses<C>[S]> : never;
}[keyof Responses<C>];

/** What a call takes: parameters as openapi.yaml names them, and the body. */
export interface Request<C extends Call> {
  path?: Parameters<C>["path"];
  query?: Parameters<C>["query"];
  headers?: Record<string, string>;
  body?: Body<C>;
  signal?: AbortSignal;
}

/** The server to call, and a key with the permissions of the call. */
export interface Server {
  url: string;
  key: string;
  fetch?: typeof globalThis.fetch;
}

/** An answer that is not a success. */
export class CallError extends Error {
  override readonly name = "CallError";
  constructor(
    readonly status: number,
    /** Such as NOT_FOUND; "" where the answer is not of this API. */
    readonly code: string,
    message: string,
    readonly details: readonly { field: string; message: string }[],
  ) {
    super(message);
  }
}

/** Calls the API: `await call<"listProjects">(server, "GET /api/platform/projects", { query: { limit: 10 } })`. */
export async function call<C extends Call>(server: Server, route: Route<C>, request: Request<C> = {}): Promise<Answer<C>> {
  const [method, template] = (route as string).split(" ") as [string, string];
  const values = (request.path ?? {}) as Record<string, unknown>;
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = String(values[name] ?? "");
    if (value === "" || value === "." || value === "..") throw new TypeError(`the path parameter ${name} is missing`);
    return encodeURIComponent(value);
  });
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(request.query ?? {})) if (value !== undefined) query.append(name, String(value));
  const { fetch = globalThis.fetch } = server;
  const response = await fetch(server.url.replace(/\/+$/, "") + path + (query.size > 0 ? `?${query}` : ""), {
    method,
    redirect: "manual",
    headers: {
      ...(request.body === undefined ? {} : { "Content-Type": "application/json" }),
      ...request.headers,
      "X-Platform-Key": server.key,
    },
    ...(request.body === undefined ? {} : { body: JSON.stringify(request.body) }),
    ...(request.signal === undefined ? {} : { signal: request.signal }),
  });
  const answer = (await response.json().catch(() => undefined)) as
    | { success?: boolean; error?: { code?: string; message?: string; details?: { field: string; message: string }[] } }
    | undefined;
  if (response.ok && answer?.success === true) return answer as Answer<C>;
  const { code = "", message = "the body is not of this API", details = [] } = answer?.error ?? {};
  throw new CallError(response.status, code, `${route as string}: ${response.status} ${message}`, details);
}
