// What every command has to do with: the terminal it speaks to, the configuration it acts by, and tables for people.
import { existsSync, statSync } from "node:fs";
import { loadConfig } from "../../core/config/load.ts";
import type { Config, Environment } from "../../core/config/schema.ts";
import type { Arguments } from "./arguments.ts";

/** What a command needs of the process: `print` text to standard output, `say` a line to standard error; `stopped` when it is to end. */
export interface Terminal {
  readonly env: Environment;
  readonly print: (text: string) => Promise<void>;
  readonly say: (line: string) => void;
  readonly stopped: AbortSignal;
  /** What root writes from here on is this user's, or a gateway that is not root could not read it. */
  readonly actAs: (user: { readonly uid: number; readonly gid: number }) => void;
}
export type Run = (args: Arguments, terminal: Terminal) => Promise<number | void>;

/** Prints what was found, for programs or for people. */
export const answer = ({ values }: Arguments, { print }: Terminal, data: unknown, text: string) =>
  print(values.json ? `${JSON.stringify(data)}\n` : text);

/** For commands that call no provider: a secret that is not set in this shell is no fault. They act as the owner of data_dir. */
export function settings({ values }: Arguments, { env, actAs }: Terminal): Config {
  const { config } = loadConfig({ file: values.config, env, secretsOptional: true });
  if (existsSync(config.data_dir)) actAs(statSync(config.data_dir));
  return config;
}

/** Columns as wide as their widest cell, numbers to the right, "-" for what is not there. */
export function table<K extends string>(
  columns: readonly K[],
  records: readonly { readonly [column in K]: unknown }[],
): string {
  const rows = [
    columns,
    ...records.map((record) => columns.map((column) => String(record[column] ?? "-"))),
  ];
  const widths = columns.map((_, at) =>
    rows.reduce((width, row) => Math.max(width, row[at]!.length), 0),
  ); // there may be too many to spread
  const numeric = columns.map((_, at) =>
    rows.slice(1).every((row) => /^([\d.]+|-)$/.test(row[at]!)),
  );
  const cell = (text: string, at: number) =>
    numeric[at] ? text.padStart(widths[at]!) : text.padEnd(widths[at]!);
  return rows.map((row) => `  ${row.map(cell).join("  ").trimEnd()}\n`).join("");
}
