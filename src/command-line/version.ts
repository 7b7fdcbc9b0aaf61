// Which version of the program this is.
import { arch, platform, version as nodeVersion } from "node:process";

/** The version in package.json; a test compares them. A build of one file has no package.json. */
export const VERSION = "0.1.0";

/** What `--version` prints: the program, and what it runs on. */
export const versionText = (): string =>
  `chat-gateway ${VERSION} (Node ${nodeVersion.slice(1)}, ${platform} ${arch})\n`;
