// Compiled, not run: calls have the types of openapi.yaml.
import { open, type Tenant } from "fingerpost-client";
import { call } from "fingerpost-client/api";
import { fileStore } from "fingerpost-client/node";

const server = { url: "http://127.0.0.1:8080", key: "fpk" };
const list = await call<"listProjects">(server, "GET /api/platform/projects", { query: { limit: 10 } });
const slug: string = list.data[0]!.slug;
await call<"updateProject">(server, "PUT /api/platform/projects/{id}", { path: { id: 1 }, body: { name: slug } });
// @ts-expect-error another call's route
await call<"listProjects">(server, "GET /api/platform/domains");
// @ts-expect-error not a parameter
await call<"listProjects">(server, "GET /api/platform/projects", { query: { limits: 10 } });

const tenants = open({ url: server.url, file: fileStore("/tmp/tenants") });
const tenant: Tenant = await tenants.lookup("shop.acme.example", { signal: AbortSignal.timeout(100) });
// @ts-expect-error frozen
tenant.labels.plan = "gold";
