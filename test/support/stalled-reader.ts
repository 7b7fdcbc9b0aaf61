// A reader of a log that takes nothing until it is told to go on.

import { Writable } from "node:stream";

export interface StalledReader {
  /** What writes to the reader. */
  readonly stream: Writable;
  /** The lines that it has taken. */
  lines(): string[];
  /** From now on it takes everything. */
  resume(): void;
}

export function createStalledReader(): StalledReader {
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
    lines: () => text.split("\n").filter((line) => line !== ""),
    resume() {
      goesOn = true;
      takeNext?.();
    },
  };
}
