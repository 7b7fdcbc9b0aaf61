// The wall clock of the tests and of the gateways in their processes. In the hour before a midnight
// of UTC it is an hour slow, so that a test has the same day and month from its start to its end.

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

const behind = DAY - (Date.now() % DAY) < HOUR ? HOUR : 0;

/** In milliseconds since 1970. */
export const now = (): number => Date.now() - behind;

/** As 2026-01-31. */
export const today = (): string => new Date(now()).toISOString().slice(0, 10);

/** As 2026-01. */
export const thisMonth = (): string => today().slice(0, 7);
