// The books as an extension: the ledger of a gateway, and the projection that makes usage records.
import { passwordsIn } from "../../scale/stores/index.ts";
import { beforeServing, programSlots } from "../../../command-line/command.ts";
import { configMoments, type ConfigExtension } from "../../../config/extension.ts";
import { systemClock } from "../../../core/clock.ts";
import type { Config } from "../../../core/config.ts";
import { moments, slots } from "../../../core/extension/places.ts";
import { dataDirIssues, makeDataDir } from "../../scale/data-files/index.ts";
import { hasFileStore, openBooks, spend, usage } from "../usage/index.ts";
import { createBooks, type BooksStatus } from "./books.ts";
import { usageSyncCommand } from "./usage-sync-command.ts";

export const extension: ConfigExtension = {
  name: "books",
  settings: [spend, usage],
  install(gateway) {
    gateway.fill(slots.ledger, createBooks);
    gateway.fill(programSlots.command("usage sync"), usageSyncCommand);
    gateway.on(beforeServing, ({ data_dir }) => makeDataDir(data_dir));
    gateway.on(moments.secrets, (config) => passwordsIn(usage.of(config).store));
    gateway.on(moments.status, statusOf);
    gateway.on(configMoments.issuesHere, dataDirIssues);
    gateway.on(configMoments.assertReady, (config, installed) => {
      const options = { clock: systemClock, diagnose: () => undefined, installed };
      openBooks(config, options).store.close();
    });
  },
};

/** The books of all processes, as GET /status has them. */
function statusOf(reports: readonly unknown[], config: Config): object {
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
}
