// Proof of the books: the commands, and what signs days and statements.
import type { ProgramExtension } from "../../../command-line/command.ts";
import type { SigningExtension, StatementSealer } from "../usage/index.ts";
import { auditCommand } from "./audit.ts";
import { rebuildCommand } from "./rebuild.ts";
import { headCommand, publicKeyCommand } from "./seal-commands.ts";
import { seals } from "./settings.ts";
import { openSigner } from "./sign.ts";
import { printSealedStatement } from "./statement.ts";
import { verifyCommand } from "./verify-command.ts";

export const extension: ProgramExtension & SigningExtension & StatementSealer = {
  name: "proof",
  settings: [seals],
  commands: {
    audit: auditCommand,
    "books rebuild": rebuildCommand,
    "seal head": headCommand,
    "seal public-key": publicKeyCommand,
    "seal verify": verifyCommand,
  },
  openSigner,
  printSealedStatement,
};
