// The wall clock of the tests and of the gateways in their processes. In the hour before midnight
// UTC it is an hour slow, so that the day and month do not change during a test.

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

const behind = DAY - (Date.now() % DAY) < HOUR ? HOUR : 0;

/** The time in milliseconds since 1970. */
export const now = (): number => Date.now() - behind;

/** The day, such as 2026-01-31. */
export const today = (): string => new Date(now()).toISOString().slice(0, 10);

/** The month, such as 2026-01. */
export const thisMonth = (): string => today().slice(0, 7);
