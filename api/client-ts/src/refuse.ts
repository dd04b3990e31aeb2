import { FingerpostError } from "./errors.js";
import type { Tenant } from "./tenant.js";
import type { Tenants } from "./tenants.js";

/** What all middlewares take. */
export interface HostOptions {
  /** Take the host from the first X-Forwarded-Host where it is there. Set it behind a proxy that sets the header only. */
  trustForwardedHost?: boolean;
}

/** The host of a request by its headers; "" if they have none. */
export function hostOf(get: (name: string) => string | null | undefined, options: HostOptions): string {
  if (options.trustForwardedHost) {
    const first = get("x-forwarded-host")?.split(",")[0]?.trim();
    if (first) return first;
  }
  return get("host") ?? get(":authority") ?? "";
}

/** How a request is answered whose host has no tenant. The text does not say why: that is for operators. */
export interface Refusal {
  status: number;
  headers: Record<string, string>;
  text: string;
}

export function refusalOf(error: FingerpostError): Refusal {
  const headers: Record<string, string> = { "Cache-Control": "no-store", "Content-Type": "text/plain; charset=utf-8" };
  switch (error.code) {
    case "unknown":
    case "invalid":
      return { status: 404, headers, text: "unknown host\n" };
    case "notVerified":
    case "suspended":
    case "forbidden":
      return { status: 403, headers, text: "this host is not served\n" };
    default:
      headers["Retry-After"] = String(Math.max(1, Math.ceil(error.retryAfter / 1000)));
      return { status: 503, headers, text: "temporarily unavailable\n" };
  }
}

/** The tenant of a host, or the error for the application; other exceptions are thrown. */
export async function ask(tenants: Tenants, host: string): Promise<Tenant | FingerpostError> {
  try {
    return await tenants.lookup(host);
  } catch (error) {
    if (error instanceof FingerpostError) return error;
    throw error;
  }
}

/** Tenants by request, for frameworks whose requests have no place with a type for them. */
export class ByRequest {
  private readonly tenants = new WeakMap<object, Tenant>();

  set(request: object, tenant: Tenant): void {
    this.tenants.set(request, tenant);
  }

  get(request: object): Tenant {
    const tenant = this.tenants.get(request);
    if (tenant === undefined) throw new Error("this request has not passed the middleware of fingerpost-client");
    return tenant;
  }
}
