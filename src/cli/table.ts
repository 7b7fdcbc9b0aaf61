// Records as a table for people: columns as wide as their widest cell, numbers to the right, "-" for what is not there.

export function formatRecords<K extends string>(columns: readonly K[], records: readonly { readonly [column in K]: unknown }[]): string {
  const rows = [columns, ...records.map((record) => columns.map((column) => String(record[column] ?? "-")))];
  const widths = columns.map((_, at) => Math.max(...rows.map((row) => row[at]!.length)));
  const numeric = columns.map((_, at) => rows.slice(1).every((row) => /^([\d.]+|-)$/.test(row[at]!)));
  const cell = (text: string, at: number) => (numeric[at] ? text.padStart(widths[at]!) : text.padEnd(widths[at]!));
  return rows.map((row) => `  ${row.map(cell).join("  ").trimEnd()}\n`).join("");
}
