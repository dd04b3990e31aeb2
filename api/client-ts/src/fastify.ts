import type { FingerpostError } from "./errors.js";
import { ask, nodeHeaders, refusal, type HostOptions } from "./refuse.js";
import type { Tenants } from "./tenants.js";

export { tenantOf, type HostOptions } from "./refuse.js";

interface Request {
  headers: Record<string, string | string[] | undefined>;
}
interface Reply {
  code(status: number): unknown;
  headers(values: Record<string, string>): unknown;
  send(text: string): unknown;
}

/** Options of the hook. */
export interface Options<Req, Rep> extends HostOptions {
  /** Answers a request whose host has no tenant, in place of 404, 403 or 503. It has to send the reply. */
  onError?: (request: Req, reply: Rep, error: FingerpostError) => unknown;
}

/** Returns a hook for onRequest. It lets requests pass whose host has a tenant, which tenantOf returns. */
export function tenantHook<Req extends Request, Rep extends Reply>(
  tenants: Tenants,
  options: Options<Req, Rep> = {},
): (request: Req, reply: Rep) => Promise<unknown> {
  return async (request, reply) => {
    const error = await ask(tenants, request, nodeHeaders(request), options);
    if (error === undefined) return undefined;
    if (options.onError !== undefined) await options.onError(request, reply, error);
    else {
      const { status, headers, text } = refusal(error);
      reply.code(status);
      reply.headers(headers);
      reply.send(text);
    }
    return reply; // an asynchronous hook that has sent the reply says so in this way
  };
}
