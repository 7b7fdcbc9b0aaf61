// A library: bounds of what providers, models and keys are asked for, counted for all processes.
export type { Ending, Permit } from "./gate.ts";
export { createGates, gatesFor, serveGates, type Gate, type Gates } from "./gates.ts";
