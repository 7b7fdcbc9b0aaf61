// How long a server of the tests' own lives: as long as one test, or as a suite that shares it.

import { after } from "node:test";

/** What ends it. A TestContext is one. */
export interface Scope {
  after(end: () => unknown): void;
}

/** The scope of the suite in whose `describe` it is called: it ends after the suite's last test. */
export function suiteScope(): Scope {
  const ends: (() => unknown)[] = [];
  after(async () => {
    for (const end of ends) await end();
  });
  return { after: (end) => ends.push(end) };
}
