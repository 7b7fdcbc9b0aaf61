// A deadline that can be renewed for every piece of a stream: the same one again only moves the timer that is there.

/** `expire` is given the name and the milliseconds of the deadline that was not moved in time. A name always has the same milliseconds. */
export function createDeadline(expire: (name: string, ms: number) => void) {
  let timer: NodeJS.Timeout | undefined;
  let current = "";

  return {
    /** Expires in `ms` unless it is set again or cleared. */
    set(name: string, ms: number): void {
      if (timer && name === current) return void timer.refresh();
      clearTimeout(timer);
      current = name;
      timer = setTimeout(expire, ms, name, ms);
    },
    clear(): void {
      clearTimeout(timer);
      timer = undefined;
    },
  };
}
