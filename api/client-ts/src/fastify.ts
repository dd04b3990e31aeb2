import type { FingerpostError } from "./errors.js";
import { ask, ByRequest, hostOf, refusalOf, type HostOptions } from "./refuse.js";
import type { Tenant } from "./tenant.js";
import type { Tenants } from "./tenants.js";

export type { HostOptions } from "./refuse.js";

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

const requests = new ByRequest();

/** Returns a hook for onRequest. It lets requests pass whose host has a tenant, which tenantOf returns. */
export function tenantHook<Req extends Request, Rep extends Reply>(
  tenants: Tenants,
  options: Options<Req, Rep> = {},
): (request: Req, reply: Rep) => Promise<unknown> {
  return async (request, reply) => {
    const host = hostOf((name) => [request.headers[name] ?? ""].flat()[0] || undefined, options);
    const found = await ask(tenants, host);
    if (!(found instanceof Error)) {
      requests.set(request, found);
      return undefined;
    }
    if (options.onError !== undefined) await options.onError(request, reply, found);
    else {
      const refusal = refusalOf(found);
      reply.code(refusal.status);
      reply.headers(refusal.headers);
      reply.send(refusal.text);
    }
    return reply; // an asynchronous hook that has sent the reply says so in this way
  };
}

/** The tenant of a request that has passed the hook. */
export function tenantOf(request: object): Tenant {
  return requests.get(request);
}
