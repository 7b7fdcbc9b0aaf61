// Seals: signs the lines of closed days and statements, and adds the commands that verify them.
import type { Installer } from "../../../core/extension/installer.ts";
import { programSlots } from "../../../command-line/command.ts";
import { signerSlot } from "../usage/index.ts";
import { headCommand, publicKeyCommand } from "./seal-commands.ts";
import { openSigner, seals } from "./sign.ts";
import { verifyCommand } from "./verify-command.ts";

export const settings = [seals];

export function install(gateway: Installer): void {
  gateway.fill(signerSlot, openSigner);
  gateway.fill(programSlots.command("seal head"), headCommand);
  gateway.fill(programSlots.command("seal public-key"), publicKeyCommand);
  gateway.fill(programSlots.command("seal verify"), verifyCommand);
}
