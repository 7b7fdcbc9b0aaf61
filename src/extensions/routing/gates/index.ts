// A library: bounds of what providers, models and keys are asked for, counted for all processes.
export type { Bounds, Entry, Gate } from "./gate.ts";
export { createGates, gatesFor, serveGates, type Gates } from "./gates.ts";
