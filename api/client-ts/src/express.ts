import type { FingerpostError } from "./errors.js";
import { ask, ByRequest, hostOf, refusalOf, type HostOptions } from "./refuse.js";
import type { Tenant } from "./tenant.js";
import type { Tenants } from "./tenants.js";

export type { HostOptions } from "./refuse.js";

interface Request {
  headers: Record<string, string | string[] | undefined>;
}
interface Response {
  statusCode: number;
  setHeader(name: string, value: string): unknown;
  end(text: string): unknown;
}
type Next = (error?: unknown) => void;

/** Options of the middleware. */
export interface Options<Req, Res> extends HostOptions {
  /** Answers a request whose host has no tenant, in place of 404, 403 or 503. */
  onError?: (request: Req, response: Res, error: FingerpostError, next: Next) => void;
}

const requests = new ByRequest();

/** Lets requests pass whose host has a tenant, which tenantOf returns. Express 4 and 5; the order of `use` matters. */
export function tenantMiddleware<Req extends Request, Res extends Response>(
  tenants: Tenants,
  options: Options<Req, Res> = {},
): (request: Req, response: Res, next: Next) => void {
  return (request, response, next) => {
    const host = hostOf((name) => [request.headers[name] ?? ""].flat()[0] || undefined, options);
    ask(tenants, host).then((found) => {
      if (!(found instanceof Error)) {
        requests.set(request, found);
        return next();
      }
      if (options.onError !== undefined) return options.onError(request, response, found, next);
      const refusal = refusalOf(found);
      response.statusCode = refusal.status;
      for (const [name, value] of Object.entries(refusal.headers)) response.setHeader(name, value);
      response.end(refusal.text);
    }).catch(next);
  };
}

/** The tenant of a request that has passed the middleware. */
export function tenantOf(request: object): Tenant {
  return requests.get(request);
}
