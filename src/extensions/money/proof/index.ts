// Proof of the books: the commands, what signs, and what bills and receipts use of it.
import type { ProgramExtension } from "../../../command-line/command.ts";
import type { SigningExtension } from "../usage/index.ts";
import { auditCommand } from "./audit.ts";
import { rebuildCommand } from "./rebuild.ts";
import { headCommand, publicKeyCommand } from "./seal-commands.ts";
import { seals } from "./settings.ts";
import { openSigner } from "./sign.ts";
import { verifyCommand } from "./verify-command.ts";

export {
  printSealedStatement,
  sealOf,
  type RecordSeal,
  type StatementToSeal,
} from "./statement.ts";

export const extension: ProgramExtension & SigningExtension = {
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
};
