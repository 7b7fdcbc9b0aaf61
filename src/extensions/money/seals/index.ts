// Seals: what signs days and statements, and the commands that verify them.
import { programSlots } from "../../../command-line/command.ts";
import type { ConfigExtension } from "../../../config/extension.ts";
import { signerSlot, statementSealerSlot } from "../usage/index.ts";
import { printSealedStatement } from "./print-statement.ts";
import { headCommand, publicKeyCommand } from "./seal-commands.ts";
import { openSigner, seals } from "./sign.ts";
import { verifyCommand } from "./verify-command.ts";

export const extension: ConfigExtension = {
  name: "seals",
  settings: [seals],
  install(gateway) {
    gateway.fill(signerSlot, openSigner);
    gateway.fill(statementSealerSlot, printSealedStatement);
    gateway.fill(programSlots.command("seal head"), headCommand);
    gateway.fill(programSlots.command("seal public-key"), publicKeyCommand);
    gateway.fill(programSlots.command("seal verify"), verifyCommand);
  },
};
