// What `--version` prints.
import { arch, platform, version as nodeVersion } from "node:process";
import { VERSION } from "../core/version.ts";

/** What `--version` prints: the program, and what it runs on. */
export const versionText = (): string =>
  `chat-gateway ${VERSION} (Node ${nodeVersion.slice(1)}, ${platform} ${arch})\n`;
