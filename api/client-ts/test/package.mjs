// The built package: FINGERPOST_CLIENT_TS is its folder, this one by default.
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

export const folder = resolve(process.env.FINGERPOST_CLIENT_TS ?? join(import.meta.dirname, ".."));

/** Imports a file of dist. */
export const load = (name) => import(pathToFileURL(join(folder, "dist", name)));
