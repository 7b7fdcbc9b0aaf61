// The books as an extension: the ledger of a gateway, and the projection that makes usage records.
import { passwordsIn } from "../../scale/stores/index.ts";
import type { ProgramExtension } from "../../../command-line/command.ts";
import { systemClock } from "../../../core/clock.ts";
import { dataDirIssues, makeDataDir } from "../../scale/data-files/index.ts";
import { hasFileStore, openBooks, usage } from "../usage/index.ts";
import { createBooks, type BooksStatus } from "./books.ts";
import { spend } from "../ledger/index.ts";
import { usageSyncCommand } from "./usage-sync-command.ts";

export const extension: ProgramExtension = {
  name: "books",
  settings: [spend, usage],
  commands: { "usage sync": usageSyncCommand },
  secrets: (config) => passwordsIn(usage.of(config).store),
  issuesHere: dataDirIssues,
  prepare: ({ data_dir }) => makeDataDir(data_dir),
  assertReady(config, extensions) {
    const options = { clock: systemClock, diagnose: () => undefined, extensions };
    openBooks(config, options).store.close();
  },
  start: createBooks,
  status(reports, config) {
    const all = reports as readonly BooksStatus[];
    const first = <K extends "spendFault" | "syncFault">(fault: K): string | null =>
      all.map((status) => status[fault]).find((message) => message !== null) ?? null;
    return {
      spend: { fault: first("spendFault") },
      usage: {
        store: hasFileStore(config) ? "file" : "postgres",
        fault: first("syncFault"),
        lag_seconds: Math.min(...all.map(({ lagMs }) => lagMs)) / 1000,
      },
    };
  },
};
