// A process that collects its garbage when it is told to, for scripts that measure what it holds:
// garbage may lie about for as long as nobody needs its room.

/** Options of Node: the process, and workers that it starts, collect all garbage on SIGUSR2. */
export const COLLECTS = [
  "--expose-gc",
  "--import",
  `data:text/javascript,${encodeURIComponent('process.on("SIGUSR2", () => gc())')}`,
];
