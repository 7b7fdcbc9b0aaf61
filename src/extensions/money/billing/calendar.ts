// Months and days, as bills and commands name them.

/** A month of a bill, in UTC. */
export const MONTH = /^[1-9]\d{3}-(0[1-9]|1[0-2])$/;

/**
 * Whether a text is a day of the calendar. The comparison is needed because V8 takes the 31st of
 * any month.
 */
export const isDay = (text: string): boolean =>
  MONTH.test(text.slice(0, 7)) && new Date(text).toJSON()?.slice(0, 10) === text;
