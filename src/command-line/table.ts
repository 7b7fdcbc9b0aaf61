// Tables for people.

/** On a terminal, control characters in a name would change what is around it. */
const shown = (value: unknown): string =>
  String(value).replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, "\ufffd");

/**
 * Columns as wide as their widest cell, numbers to the right, "-" for what is absent. Ends with a
 * line end.
 */
export function table<K extends string>(
  columns: readonly K[],
  records: readonly { readonly [column in K]: unknown }[],
): string {
  const rows = [
    columns,
    ...records.map((record) => columns.map((column) => shown(record[column] ?? "-"))),
  ];
  // A loop, because there may be too many rows to spread.
  const widths = columns.map((_, at) =>
    rows.reduce((width, row) => Math.max(width, row[at]!.length), 0),
  );
  const numeric = columns.map((_, at) =>
    rows.slice(1).every((row) => /^([\d.]+|-)$/.test(row[at]!)),
  );
  const cell = (text: string, at: number): string =>
    numeric[at] ? text.padStart(widths[at]!) : text.padEnd(widths[at]!);
  return rows.map((row) => `  ${row.map(cell).join("  ").trimEnd()}\n`).join("");
}
