// Judges deliveries with the npm package standardwebhooks: each line of its input has one, and each line that it prints the
// verdict, "" for a good one.
const { createRequire } = require("node:module");
const { Webhook } = createRequire(process.env.FINGERPOST_NPM + "/")("standardwebhooks");

require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { secret, headers, body } = JSON.parse(line);
  let verdict = "";
  try {
    const said = new Webhook(secret).verify(Buffer.from(body, "base64"), headers);
    if (typeof said.type !== "string" || typeof said.data !== "object") verdict = "it is no event";
  } catch (e) {
    verdict = e.message;
  }
  console.log(JSON.stringify(verdict));
});
