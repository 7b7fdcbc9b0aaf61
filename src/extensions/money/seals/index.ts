// Seals: what signs days and statements, and the commands that verify them.
import type { ProgramExtension } from "../../../command-line/command.ts";
import type { SigningExtension, StatementSealer } from "../usage/index.ts";
import { printSealedStatement } from "./print-statement.ts";
import { headCommand, publicKeyCommand } from "./seal-commands.ts";
import { seals } from "./settings.ts";
import { openSigner } from "./sign.ts";
import { verifyCommand } from "./verify-command.ts";

export const extension: ProgramExtension & SigningExtension & StatementSealer = {
  name: "seals",
  settings: [seals],
  commands: {
    "seal head": headCommand,
    "seal public-key": publicKeyCommand,
    "seal verify": verifyCommand,
  },
  openSigner,
  printSealedStatement,
};
