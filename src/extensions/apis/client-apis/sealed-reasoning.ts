// Reasoning that clients keep sealed, and send back with their next request.
import type { GatewayContext } from "../../../core/extension/installer.ts";
import { fail } from "../../../core/schema/checker.ts";
import { createSealer, installationSecret, type Sealer } from "../../scale/data-files/index.ts";
import type { Path } from "./messages.ts";

export type { Sealer };

/** All APIs of an installation can open what one of them has sealed. */
export const createReasoningSealer = ({ config, diagnose }: GatewayContext): Sealer =>
  createSealer("sealed reasoning", () =>
    installationSecret(config.data_dir, (reason) => {
      const detail = `sealed reasoning cannot be read after the next start: ${reason}`;
      diagnose({ event: "reasoning_key_unavailable", level: "warn", detail });
    }),
  );

/** The most sealed texts in one request. Each costs a decryption, however short it is. */
const MAX_SEALED = 10_000;

/** Opens a sealed text. Undefined: another installation sealed it, or it was changed. */
export type Opener = (sealed: string, path: Path) => string | undefined;

/**
 * Opens the texts of one request. Throws a ValidationError with the path of the first one too many.
 */
export function createOpener(open: Sealer["open"]): Opener {
  let count = 0;
  return (sealed, path) => {
    count += 1;
    const message = `is one more than the ${MAX_SEALED} sealed texts allowed`;
    return count > MAX_SEALED ? fail("invalid_value", message, path) : open(sealed);
  };
}
