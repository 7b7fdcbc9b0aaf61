// Diagnostics: messages for the operator, one JSON object a line on standard error.

/**
 * Writes one line. By convention it has `event`, a name in snake_case, and `level`: "info", "warn"
 * or "error".
 */
export type Diagnose = (event: Readonly<Record<string, unknown>>) => void;

/** The text of an error with its stack and causes: for the operator, never for a client. */
export function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const text = error.stack ?? error.message;
  return error.cause === undefined ? text : `${text}\ncaused by ${describe(error.cause)}`;
}
