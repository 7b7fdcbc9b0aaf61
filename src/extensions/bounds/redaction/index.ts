// Providers' own messages and paths in the operator's logs, /status and the ledger, without the
// secrets that may stand in them.
import type { Extension } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import { createRedact } from "./redact.ts";
import { secretsIn } from "./secrets.ts";

export const extension: Extension = {
  name: "redaction",
  install(gateway) {
    gateway.fill(slots.redact, (config, installed) => {
      const { texts, digests } = secretsIn(config, installed);
      return createRedact(texts, digests);
    });
  },
};
