const maxLine = 16 << 20; // characters

/** What stands between two empty lines of a stream of Server-Sent Events: an event, an id, or comments. */
export interface Block {
  id: string | undefined;
  event: string;
  data: string | undefined; // undefined: it is not an event
}

/** Reads Server-Sent Events. A block that the stream ends within is dropped. */
export class Blocks {
  private readonly decoder = new TextDecoder();
  private rest = "";
  private scanned = 0; // characters of rest without a line's end
  private block: Block = empty();

  /** Takes bytes of the stream and returns the blocks that they complete. */
  take(bytes: Uint8Array): Block[] {
    const whole: Block[] = [];
    this.rest += this.decoder.decode(bytes, { stream: true });
    let start = 0;
    for (;;) {
      const end = this.rest.indexOf("\n", Math.max(start, this.scanned));
      if (end < 0) break;
      const line = this.rest.slice(start, this.rest[end - 1] === "\r" && end > start ? end - 1 : end);
      start = end + 1;
      if (line === "") {
        whole.push(this.block);
        this.block = empty();
      } else this.field(line);
    }
    this.rest = this.rest.slice(start);
    this.scanned = this.rest.length;
    if (this.scanned > maxLine || (this.block.data?.length ?? 0) > maxLine) throw new Error("an event is too large");
    return whole;
  }

  private field(line: string): void {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (name === "id") this.block.id = value;
    else if (name === "event") this.block.event = value;
    else if (name === "data") this.block.data = this.block.data === undefined ? value : `${this.block.data}\n${value}`;
  }
}

function empty(): Block {
  return { id: undefined, event: "", data: undefined };
}
