/** The real time plus an offset. advance moves it, and timers that have become due run. */
export class ShiftedClock {
  #offset = 0;
  #timers = new Set();

  now = () => performance.timeOrigin + performance.now() + this.#offset;

  after = (ms, f) => {
    const timer = { due: this.now() + ms, f };
    this.#timers.add(timer);
    this.#set(timer);
    return () => {
      this.#timers.delete(timer);
      clearTimeout(timer.real);
    };
  };

  #set(timer) {
    clearTimeout(timer.real);
    timer.real = setTimeout(
      () => {
        this.#timers.delete(timer);
        timer.f();
      },
      Math.max(0, timer.due - this.now()),
    );
  }

  advance(by) {
    this.#offset += by;
    for (const timer of this.#timers) this.#set(timer);
  }
}
