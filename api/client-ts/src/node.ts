import { randomUUID } from "node:crypto";
import { link, lstat, open, readFile, readlink, rename, stat, unlink, utimes } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname } from "node:path";
import type { Store } from "./index.js";

const held = 30_000; // how long a lock is good without a sign of its process, in milliseconds
const sign = 5000; // between two signs

/**
 * Keeps answers in a file for the option `file`. One process writes it; another one with the same path reads it and does
 * not write. The folder must exist. The file is replaced, and has the mode 0600.
 */
export function fileStore(path: string): Store {
  const lock = new Lock(`${path}.lock`);
  return {
    async read() {
      try {
        const file = await open(path);
        try {
          const [at, own] = await Promise.all([lstat(path), file.stat()]);
          // Where the path is a link, the file is somebody else's.
          if (at.ino === own.ino && at.dev === own.dev && (own.mode & 0o077) !== 0) await file.chmod(0o600);
          return await file.readFile("utf8");
        } finally {
          await file.close();
        }
      } catch (error) {
        if (is(error, "ENOENT")) return undefined;
        throw error;
      }
    },
    async write(text) {
      await lock.take();
      const part = `${path}.part`;
      await remove(part); // of a process that was killed
      try {
        const file = await open(part, "wx", 0o600);
        try {
          await file.writeFile(text);
          await file.sync();
        } finally {
          await file.close();
        }
        await rename(part, path);
      } catch (error) {
        await remove(part);
        throw error;
      }
      await syncFolder(dirname(path));
    },
    close: () => lock.release(),
  };
}

/** A lock file. Node has no locks of the system, so its holder gives a sign every few seconds. */
class Lock {
  private own = "";
  private place = "";
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor(private readonly path: string) {}

  /** Takes the lock, unless this process has it. It throws if another one has. */
  async take(): Promise<void> {
    if (this.own === "") {
      this.place = await place();
      this.own = JSON.stringify({ place: this.place, pid: process.pid, id: randomUUID() });
    }
    for (let n = 0; n < 3; n++) {
      const holder = await this.holder();
      if (holder === this.own) return;
      if (holder !== undefined) {
        if (await this.isHeld(holder)) throw new Error("another process writes it");
        await this.breakLock(holder);
      }
      if (await this.create(this.own)) {
        this.timer ??= setInterval(() => void this.touch(), sign);
        this.timer.unref();
        return;
      }
    }
    throw new Error("another process writes it");
  }

  private async holder(): Promise<string | undefined> {
    try {
      return await readFile(this.path, "utf8");
    } catch (error) {
      if (is(error, "ENOENT")) return undefined;
      throw error;
    }
  }

  private async isHeld(holder: string): Promise<boolean> {
    try {
      const { place, pid } = JSON.parse(holder) as { place?: unknown; pid?: unknown };
      if (place === this.place && typeof pid === "number" && pid !== process.pid) process.kill(pid, 0);
    } catch (error) {
      if (is(error, "ESRCH")) return false;
    }
    try {
      return Date.now() - (await stat(this.path)).mtimeMs < held;
    } catch {
      return false;
    }
  }

  /** Removes the lock of a process that has ended, and puts back one that has replaced it meanwhile. */
  private async breakLock(holder: string): Promise<void> {
    const aside = `${this.path}.${randomUUID()}`;
    try {
      await rename(this.path, aside);
      const moved = await readFile(aside, "utf8");
      if (moved !== holder) await this.create(moved);
    } catch (error) {
      if (!is(error, "ENOENT")) throw error;
    } finally {
      await remove(aside);
    }
  }

  /** Creates the lock with its content at once; false if there is one. */
  private async create(content: string): Promise<boolean> {
    const part = `${this.path}.${randomUUID()}`;
    try {
      const file = await open(part, "wx", 0o600);
      try {
        await file.writeFile(content);
      } finally {
        await file.close();
      }
      await link(part, this.path);
      return true;
    } catch (error) {
      if (is(error, "EEXIST")) return false;
      throw error;
    } finally {
      await remove(part);
    }
  }

  private async touch(): Promise<void> {
    try {
      const now = new Date();
      if ((await this.holder()) === this.own) await utimes(this.path, now, now);
    } catch {
      // the next write tells
    }
  }

  async release(): Promise<void> {
    clearInterval(this.timer);
    this.timer = undefined;
    try {
      if ((await this.holder()) === this.own) await remove(this.path);
    } catch {
      // it is no longer held after a while
    }
  }
}

/** Where a process id says something: host name, start of the system, and name space of process ids. */
async function place(): Promise<string> {
  const parts = [readFile("/proc/sys/kernel/random/boot_id", "utf8"), readlink("/proc/self/ns/pid")];
  const texts = await Promise.all(parts.map((part) => part.catch(() => ""))); // Linux has them
  return [hostname(), ...texts].join(" ");
}

async function remove(path: string): Promise<void> {
  await unlink(path).catch(() => undefined);
}

async function syncFolder(path: string): Promise<void> {
  try {
    const folder = await open(path);
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  } catch {
    // not every system can
  }
}

function is(error: unknown, code: string): boolean {
  return error instanceof Error && (error as NodeJS.ErrnoException).code === code;
}
