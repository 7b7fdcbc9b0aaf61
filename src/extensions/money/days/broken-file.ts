// What the operator reads of a file of the books that is not as it was left.

/** Of a file that has less than it had. `size` -1: it is not there. */
export const brokenFile = (path: string, size: number, bytes: number): string =>
  `${path} ${size < 0 ? "is not there" : `has ${size} bytes`}, although ${bytes} bytes of it ` +
  "were written: stop the gateway, restore data_dir, run 'books rebuild' and start again";
