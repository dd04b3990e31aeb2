// Compiled, not run: calls have the types of openapi.yaml.
import { open, type Tenant } from "fingerpost-client";
import { call } from "fingerpost-client/api";
import { fileStore } from "fingerpost-client/node";

const server = { url: "http://127.0.0.1:8080", key: "fpk" };
const list = await call<"listProjects">(server, "GET /api/platform/projects", { query: { limit: 10 } });
const slug: string = list.data[0]!.slug;
await call<"updateProject">(server, "PUT /api/platform/projects/{id}", { path: { id: 1 }, body: { name: slug } });

// Each write takes its fewest fields: what a call leaves out stays, or has its default.
const project = { path: { projectId: 1 } };
await call<"createProject">(server, "POST /api/platform/projects", { body: { name: "Acme" } });
await call<"createDomain">(server, "POST /api/platform/projects/{id}/domains", { path: { id: 1 }, body: { domain: "shop.acme.example" } });
await call<"updateDomain">(server, "PUT /api/platform/projects/{projectId}/domains/{domainId}", { path: { projectId: 1, domainId: 2 }, body: {} });
await call<"updateServiceSettings">(server, "PUT /api/platform/projects/{id}/service-settings", { path: { id: 1 }, body: { mailEnabled: true } });
await call<"updateAuthSettings">(server, "PUT /api/platform/projects/{id}/auth-settings", { path: { id: 1 }, body: { inviteOnly: true } });
await call<"createKey">(server, "POST /api/platform/keys", { body: { name: "app", allow: ["read"] } });
await call<"rotateKey">(server, "POST /api/platform/keys/{name}/rotate", { path: { name: "app" }, body: {} });
await call<"createWebhook">(server, "POST /api/platform/webhooks", { body: { name: "crm", url: "https://crm.example/" } });
await call<"updateWebhook">(server, "PUT /api/platform/webhooks/{name}", { path: { name: "crm" }, body: {} });
await call<"rotateWebhook">(server, "POST /api/platform/webhooks/{name}/rotate", { path: { name: "crm" }, body: {} });
await call<"putSmtpConfig">(server, "PUT /api/mail/projects/{projectId}/smtp-config", { ...project, body: { host: "smtp.acme.example" } });
await call<"saveSmtpConfig">(server, "POST /api/mail/projects/{projectId}/smtp-config", { ...project, body: { port: 465 } });
await call<"putTemplate">(server, "PUT /api/mail/projects/{projectId}/templates", { ...project, body: { code: "WELCOME" } });
await call<"saveTemplate">(server, "POST /api/mail/projects/{projectId}/templates", { ...project, body: { code: "WELCOME" } });
await call<"sendTemplate">(server, "POST /api/mail/send/template", { body: { domain: "a.example", toEmail: "a@b.example", templateCode: "A" } });
await call<"sendRaw">(server, "POST /api/mail/send/raw", { body: { domain: "a.example", toEmail: "a@b.example", subject: "A", bodyText: "a" } });
await call<"testSmtpConfig">(server, "POST /api/mail/projects/smtp-config/test", { body: { host: "a", fromEmail: "a@b.example", toEmail: "a@b.example" } });
await call<"resolveDomains">(server, "POST /api/platform/projects/resolve", { body: { domains: ["shop.acme.example"] } });
await call<"listTemplates">(server, "GET /api/mail/projects/{projectId}/templates", { ...project, query: { page: 1 } });
await call<"listAudit">(server, "GET /api/platform/audit", { query: { limit: 1 } });
// @ts-expect-error required
await call<"createDomain">(server, "POST /api/platform/projects/{id}/domains", { path: { id: 1 }, body: {} });

// @ts-expect-error another call's route
await call<"listProjects">(server, "GET /api/platform/domains");
// @ts-expect-error not a parameter
await call<"listProjects">(server, "GET /api/platform/projects", { query: { limits: 10 } });

const tenants = open({ url: server.url, file: fileStore("/tmp/tenants") });
const tenant: Tenant = await tenants.lookup("shop.acme.example", { signal: AbortSignal.timeout(100) });
// @ts-expect-error frozen
tenant.labels.plan = "gold";
