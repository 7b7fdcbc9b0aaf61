// Runs a command in this process, and keeps what it says of its progress instead of showing it.

import { createTerminal } from "../../src/command-line/terminal.ts";
import type { Command } from "../../src/command-line/command.ts";
import type { Process } from "../../src/command-line/terminal.ts";
import { loader } from "./config.ts";

/** One piece of work. */
export interface ShownWork {
  readonly label: string;
  /** Bytes that it was said to read. */
  readonly total: number;
  /** Bytes that it has read. */
  done: number;
  isEnded: boolean;
}

/** Resolves with all pieces of work in their order. */
export async function progressOf(
  command: Command,
  values: Readonly<Record<string, string>>,
): Promise<readonly ShownWork[]> {
  const shown: ShownWork[] = [];
  const world = {
    env: {},
    stdout: process.stdout,
    stderr: process.stderr,
    print: async () => undefined,
    actAs: () => undefined,
  } as unknown as Process;
  const terminal = createTerminal(world, loader, new AbortController().signal);
  const progress = {
    clear: () => undefined,
    begin(label: string, total: number) {
      const work: ShownWork = { label, total, done: 0, isEnded: false };
      shown.push(work);
      return {
        add(bytes: number) {
          work.done += bytes;
        },
        end() {
          work.isEnded = true;
        },
      };
    },
  };
  await command.run({ operand: "", values }, { ...terminal, progress });
  return shown;
}
