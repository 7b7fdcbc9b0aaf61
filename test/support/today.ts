// The wall clock of the tests, of the gateways in their processes, and of the programs that they
// start. In the hour before midnight UTC it is an hour slow, so that the day and month do not change
// during a test.

import { runInThisContext } from "node:vm";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** JavaScript that adds `ms` milliseconds to the wall clock of its process. */
const clockCode = (ms: number): string => `{
  const { now } = Date;
  globalThis.Date = class extends Date {
    constructor(...args) { super(...(args.length > 0 ? args : [Date.now()])); }
    static now() { return now() + ${ms}; }
  };
}`;

/** A module that does so in the process that imports it. */
export const clockModule = (ms: number): string =>
  `data:text/javascript,${encodeURIComponent(clockCode(ms))}`;

const isSlow = DAY - (Date.now() % DAY) < HOUR;
if (isSlow) runInThisContext(clockCode(-HOUR));

/** Arguments of Node that give a program this clock. */
export const clockArgs: readonly string[] = isSlow ? ["--import", clockModule(-HOUR)] : [];

/** The day, such as 2026-01-31. */
export const today = (): string => new Date().toISOString().slice(0, 10);

/** The month, such as 2026-01. */
export const thisMonth = (): string => today().slice(0, 7);
