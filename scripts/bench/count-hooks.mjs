// Loaded into a process before its program: counts what it creates, and says so on standard error
// at each SIGUSR2. Counts are exact, whatever else the machine does.

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
