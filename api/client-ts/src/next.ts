import type { FingerpostError } from "./errors.js";
import { ask, hostOf, refusalOf, type HostOptions } from "./refuse.js";
import type { Tenant } from "./tenant.js";
import type { Tenants } from "./tenants.js";

export type { HostOptions } from "./refuse.js";

/** Options of the proxy. */
export interface Options<Req> extends HostOptions {
  /** Answers a request whose host has no tenant, in place of 404, 403 or 503. */
  onError?: (request: Req, error: FingerpostError) => Response | Promise<Response>;
}

/**
 * Returns a function for Next's proxy.ts, or middleware.ts before Next 16. It calls pass for requests whose host has a
 * tenant, and answers the others.
 */
export function tenantProxy<Req extends Request>(
  tenants: Tenants,
  pass: (request: Req, tenant: Tenant) => Response | Promise<Response>,
  options: Options<Req> = {},
): (request: Req) => Promise<Response> {
  return async (request) => {
    const host = hostOf((name) => (/^[a-z-]+$/.test(name) ? request.headers.get(name) : null), options);
    const found = await ask(tenants, host || new URL(request.url).host);
    if (!(found instanceof Error)) return pass(request, found);
    if (options.onError !== undefined) return options.onError(request, found);
    const { text, ...init } = refusalOf(found);
    return new Response(text, init);
  };
}
