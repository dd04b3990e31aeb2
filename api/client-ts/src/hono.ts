import type { FingerpostError } from "./errors.js";
import { ask, ByRequest, hostOf, refusalOf, type HostOptions } from "./refuse.js";
import type { Tenant } from "./tenant.js";
import type { Tenants } from "./tenants.js";

export type { HostOptions } from "./refuse.js";

interface Context {
  req: { raw: Request };
}

/** Options of the middleware. */
export interface Options<C> extends HostOptions {
  /** Answers a request whose host has no tenant, in place of 404, 403 or 503. */
  onError?: (context: C, error: FingerpostError) => Response | Promise<Response>;
}

const requests = new ByRequest();

/** Lets requests pass whose host has a tenant, which tenantOf returns. */
export function tenantMiddleware<C extends Context>(
  tenants: Tenants,
  options: Options<C> = {},
): (context: C, next: () => Promise<void>) => Promise<Response | void> {
  return async (context, next) => {
    const { raw } = context.req;
    const get = (name: string) => (name === "host" ? new URL(raw.url).host : name === ":authority" ? null : raw.headers.get(name));
    const found = await ask(tenants, hostOf(get, options));
    if (found instanceof Error) {
      if (options.onError !== undefined) return options.onError(context, found);
      const { text, ...init } = refusalOf(found);
      return new Response(text, init);
    }
    requests.set(context, found);
    return next();
  };
}

/** The tenant of a request that has passed the middleware, by its context. */
export function tenantOf(context: object): Tenant {
  return requests.get(context);
}
