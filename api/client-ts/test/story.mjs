/** What every runtime has to do: follow the change feed, hit, see a write, tell unknown names, and end. */
export async function story(open, call, server) {
  let changed;
  const change = new Promise((done) => (changed = done));
  const tenants = open({ ...server, warm: ["shop.acme.example"], onChange: changed });
  try {
    await tenants.ready({ signal: AbortSignal.timeout(30_000) });
    const tenant = await tenants.lookup("Shop.Acme.Example:443");
    if (tenant !== (await tenants.lookup("shop.acme.example"))) throw new Error("a hit made another object");
    const name = `Acme ${Date.now()}`;
    await call(server, "PUT /api/platform/projects/{id}", { path: { id: tenant.id }, body: { name } });
    await change;
    if ((await tenants.lookup("shop.acme.example")).name !== name) throw new Error("a write was not seen");
    const refused = await tenants.lookup("nobody.example").catch((error) => error.code);
    const bad = await tenants.lookup("a..b").catch((error) => error.code);
    const idn = await tenants.lookup("bücher.acme.example");
    return `${tenant.slug} ${refused} ${bad} ${idn.domain}`;
  } finally {
    await tenants.close();
  }
}

export const told = "acme unknown invalid *.acme.example";
