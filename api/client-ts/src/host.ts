import { FingerpostError } from "./errors.js";

const maxHost = 253; // octets
const maxLabel = 63;

/**
 * Returns the name under which the server answers a host as a client sends it: lower case, without port and final dot,
 * IDNA A-labels. It throws a FingerpostError with the code `invalid` for anything that is not a host name.
 */
export function canonical(raw: string): string {
  const known = memo.get(raw);
  if (known !== undefined) return known;
  const name = parse(raw);
  if (name !== raw) {
    if (memo.size >= maxMemo) memo.clear();
    memo.set(raw, name);
  }
  return name;
}

/** The canonical form of another spelling that came before. */
export function remembered(raw: string): string | undefined {
  return memo.get(raw);
}

// A spelling comes again, and IDNA takes several microseconds.
const memo = new Map<string, string>();
const maxMemo = 4096;

function invalid(why: string): FingerpostError {
  return new FingerpostError("invalid", `not a host name: it ${why}`);
}

function parse(raw: string): string {
  const colon = raw.indexOf(":");
  if (colon >= 0) {
    const port = raw.slice(colon + 1);
    if (port.includes(":") || raw[0] === "[") throw invalid("is an IP address");
    if (!/^[0-9]{0,5}$/.test(port) || Number(port) > 65535) throw invalid("has a bad port");
    raw = raw.slice(0, colon);
  }
  let dotted = false;
  if (raw.endsWith(".")) {
    raw = raw.slice(0, -1);
    dotted = true;
  }
  if (raw === "") throw invalid("is empty");
  if (raw.length > 4 * maxHost) throw invalid("is longer than 253 octets");
  if (/^[a-z0-9_.-]+$/i.test(raw)) {
    const name = raw.toLowerCase();
    return check(name) ? international(name) : name;
  }
  if (/[\x00-\x7f]/.test(raw.replace(/[a-z0-9_.-]/gi, ""))) throw invalid("has a character that no host name has");
  if (new TextEncoder().encode(raw).length > 4 * maxHost) throw invalid("is longer than 253 octets");
  return international(dotted ? `${raw}.` : raw);
}

/** Checks a lower-case ASCII name and reports whether it has an `xn--` label. */
function check(name: string): boolean {
  if (name.length > maxHost) throw invalid("is longer than 253 octets");
  let encoded = false;
  let last = "";
  for (const label of name.split(".")) {
    if (label === "") throw invalid("has an empty label");
    if (label.length > maxLabel) throw invalid("has a label of more than 63 octets");
    if (label.startsWith("xn--") && label.endsWith("-")) throw invalid("has a label that begins or ends with a hyphen");
    encoded ||= label.startsWith("xn--");
    last = label;
  }
  // URL parsers take a name for an IPv4 address if its last label is a number.
  if (/^([0-9]+|0x[0-9a-f]*)$/.test(last)) throw invalid("is an IP address");
  return encoded;
}

const noIDNA = "is not a valid internationalised name";

function international(name: string): string {
  name = name.replace(/[\u3002\uff0e\uff61]/g, ".").replace(/\.$/, "");
  const labels = name.split(".").map((label) => {
    const plain = /^[\x00-\x7f]*$/.test(label);
    const encoded = /^xn--/i.test(label);
    if (plain && !encoded) return label.toLowerCase();
    if (encoded && !plain) throw invalid(noIDNA);
    const ascii = toASCII(label);
    // A label that does not decode to what it encodes would give one name two spellings.
    if (ascii.startsWith("xn--")) {
      const unicode = decode(ascii.slice(4));
      // The URL parser allows these hyphens and the server does not; it counts bytes.
      const bytes = new TextEncoder().encode(unicode);
      const hyphens = bytes[2] === 0x2d && bytes[3] === 0x2d;
      if (unicode.startsWith("-") || unicode.endsWith("-") || hyphens) throw invalid(noIDNA);
      if (toASCII(unicode) !== ascii) throw invalid(noIDNA);
    }
    return ascii;
  });
  name = labels.join(".");
  check(name);
  return name;
}

/** The label in ASCII, by the IDNA of the platform's URL parser (UTS 46, not transitional, with the bidi and joiner rules). */
function toASCII(label: string): string {
  let host: string;
  try {
    // A second label, since the parser reads a number alone as an IPv4 address.
    host = new URL(`http://${label.replace(/\u1e9e/g, "ss")}.x`).hostname;
  } catch {
    throw invalid(noIDNA);
  }
  const ascii = host.slice(0, -2);
  if (!host.endsWith(".x") || !/^[a-z0-9-]+$/.test(ascii)) throw invalid(noIDNA);
  return ascii;
}

/** Decodes Punycode (RFC 3492) in lower case. */
function decode(text: string): string {
  const bad = invalid(noIDNA);
  const hyphen = text.lastIndexOf("-");
  const out = hyphen > 0 ? Array.from(text.slice(0, hyphen), (c) => c.codePointAt(0) as number) : [];
  let n = 128;
  let i = 0;
  let bias = 72;
  for (let at = hyphen > 0 ? hyphen + 1 : 0; at < text.length; ) {
    const before = i;
    for (let w = 1, k = 36; ; k += 36) {
      const c = text.charCodeAt(at++);
      const digit = c >= 97 && c <= 122 ? c - 97 : c >= 48 && c <= 57 ? c - 22 : 36;
      if (!(digit < 36)) throw bad;
      i += digit * w;
      const t = Math.min(Math.max(k - bias, 1), 26);
      if (digit < t) break;
      w *= 36 - t;
      if (i > 0x7fffffff || w > 0x7fffffff) throw bad;
    }
    const length = out.length + 1;
    let delta = Math.floor((i - before) / (before === 0 ? 700 : 2));
    delta += Math.floor(delta / length);
    let k = 0;
    for (; delta > 455; k += 36) delta = Math.floor(delta / 35);
    bias = k + Math.floor((36 * delta) / (delta + 38));
    n += Math.floor(i / length);
    i %= length;
    if (n > 0x10ffff || (n >= 0xd800 && n <= 0xdfff)) throw bad;
    out.splice(i++, 0, n);
  }
  return String.fromCodePoint(...out);
}
