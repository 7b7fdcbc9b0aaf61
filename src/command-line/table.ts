// Formats tables for people.

/** The text of a cell. Replaces control characters, which a terminal would interpret. */
const shown = (value: unknown): string =>
  String(value).replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, "\ufffd");

/**
 * A table with columns as wide as their widest cell, right-aligned numbers, and "-" for absent
 * values. Ends with a newline.
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
