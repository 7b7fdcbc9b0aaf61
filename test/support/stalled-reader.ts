// A reader of a log that takes nothing until it is told to go on.

import { Writable } from "node:stream";

export function createStalledReader() {
  let takeNext: (() => void) | undefined;
  let goesOn = false;
  let text = "";
  const stream = new Writable({
    decodeStrings: false,
    write(chunk: string, _, done) {
      const take = () => {
        text += chunk;
        done();
      };
      if (goesOn) take();
      else takeNext = take;
    },
  });
  return {
    stream,
    /** The lines that it has taken. */
    lines: () => text.split("\n").filter((line) => line !== ""),
    /** From now on it takes everything. */
    resume() {
      goesOn = true;
      takeNext?.();
    },
  };
}
