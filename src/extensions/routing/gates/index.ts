// A library: bounds of what providers, models and keys are asked for, counted for all processes.
export type { Bounds } from "./gate.ts";
export { createGates, gatesFor, serveGates, type Door, type Entry, type Gates } from "./gates.ts";
