/** A state of the server's files: an epoch and a generation. */
export interface Position {
  epoch: string;
  generation: bigint;
}

export function parsePosition(text: string | null | undefined): Position | undefined {
  const m = /^([0-9a-f]{16})\.([0-9]{1,20})$/.exec(text ?? "");
  return m === null ? undefined : { epoch: m[1] as string, generation: BigInt(m[2] as string) };
}

export function positionText(p: Position): string {
  return `${p.epoch}.${p.generation}`;
}

/** Reports whether p is of the same epoch as q and not older. */
export function reaches(p: Position, q: Position): boolean {
  return p.epoch === q.epoch && p.generation >= q.generation;
}
