// The command `seal verify`: what is proved of the books, of a segment or of a sealed statement, by
// nothing but the files.
import type { ProgramExtension } from "../../command-line/command.ts";
import { verifyCommand } from "./verify-command.ts";

export const extension: ProgramExtension = {
  name: "seal-verify",
  commands: { "seal verify": verifyCommand },
};
