// A deadline that can be renewed for every piece of a stream: the same one again only moves the timer that is there.

/** `expire` is given the name and the milliseconds of the deadline that was not moved in time. */
export function createDeadline(expire: (name: string, ms: number) => void) {
  let timer: NodeJS.Timeout | undefined;
  let current = "";
  let span = 0;

  return {
    /** Expires in `ms` unless it is set again or cleared. */
    set(name: string, ms: number): void {
      current = name;
      if (timer && ms === span) return void timer.refresh();
      clearTimeout(timer);
      span = ms;
      timer = setTimeout(() => expire(current, ms), ms);
    },
    clear(): void {
      clearTimeout(timer);
      timer = undefined;
    },
  };
}
