// The built package: FINGERPOST_CLIENT_TS is its folder, this one by default. To build this one and test it:
// npm ci --ignore-scripts && npm run types && npm run build, then FINGERPOST_BINARY=… npm test with a built fingerpost.
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

export const folder = resolve(process.env.FINGERPOST_CLIENT_TS ?? join(import.meta.dirname, ".."));

/** Imports a file of dist. */
export const load = (name) => import(pathToFileURL(join(folder, "dist", name)));
