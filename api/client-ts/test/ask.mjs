// The story in the runtime that runs this file; its argument has the folder of the package and the server.
import { story } from "./story.mjs";

const { folder, ...server } = JSON.parse(process.argv.at(-1));
const { open } = await import(`${folder}/dist/index.js`);
const { call } = await import(`${folder}/dist/api.js`);
console.log(await story(open, call, server));
