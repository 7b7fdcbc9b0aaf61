// The lifetime of a test's server: that of one test, or of a suite whose tests share the server.

import { after } from "node:test";

/** A lifetime. A TestContext is one. */
export interface Scope {
  /** Calls `end` when the lifetime ends. */
  after(end: () => unknown): void;
}

/** The lifetime of the suite in whose `describe` this is called. */
export function suiteScope(): Scope {
  const ends: (() => unknown)[] = [];
  after(async () => {
    for (const end of ends) await end();
  });
  return { after: (end) => ends.push(end) };
}
