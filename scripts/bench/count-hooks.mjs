// Preloaded into a process: counts the promises, timers and bytes that the program creates, and
// writes the counts to standard error at each SIGUSR2. The counts do not depend on machine load.

import { createHook } from "node:async_hooks";
import { writeSync } from "node:fs";

let promises = 0;
let timers = 0;

createHook({
  init(_id, type) {
    if (type === "PROMISE") promises += 1;
    else if (type === "Timeout") timers += 1;
  },
}).enable();

process.on("SIGUSR2", () => {
  const bytes = process.memoryUsage().heapUsed;
  globalThis.gc({ type: "minor" });
  const kept = process.memoryUsage().heapUsed;
  writeSync(2, `${JSON.stringify({ counted: { promises, timers, bytes, kept } })}\n`);
});
