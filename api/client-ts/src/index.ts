/**
 * Answers "whose request is this?" in the process of a service that serves many tenants by host name, from a cache that
 * fingerpost's change feed keeps true.
 */
export { open, type Status, type Tenants } from "./tenants.js";
export { FingerpostError, type Code } from "./errors.js";
export type { Auth, Services, Tenant } from "./tenant.js";
export type { Kind, LookupEvent, Options, Store } from "./options.js";
export type { Clock } from "./clock.js";
