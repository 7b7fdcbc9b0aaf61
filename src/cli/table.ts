// Rows of text as a table for people: columns as wide as their widest cell, numbers to the right.

export function formatTable(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const numeric = widths.map((_, column) => rows.slice(1).every((row) => /^([\d.]+|-)$/.test(row[column]!)));
  const cell = (text: string, column: number) => (numeric[column] ? text.padStart(widths[column]!) : text.padEnd(widths[column]!));
  return rows.map((row) => `  ${row.map(cell).join("  ").trimEnd()}\n`).join("");
}

/** Records as a table with a heading; "-" stands for what is not there. */
export const formatRecords = <K extends string>(columns: readonly K[], records: readonly { readonly [column in K]: unknown }[]): string =>
  formatTable([columns, ...records.map((record) => columns.map((column) => String(record[column] ?? "-")))]);
