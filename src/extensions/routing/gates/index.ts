// A library: limits of requests to providers, models and keys, counted across all processes.
export type { Ending, Permit } from "./gate.ts";
export { createGates, gatesFor, serveGates, type Gate, type Gates } from "./gates.ts";
