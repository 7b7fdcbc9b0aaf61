// The text of `--version`.
import { VERSION } from "../core/version.ts";

/**
 * The versions of the program and of Node, and the platform. Importing node:process opens standard
 * input, which takes milliseconds, so it is imported here only.
 */
export async function versionText(): Promise<string> {
  const { arch, platform, version } = await import("node:process");
  return `chat-gateway ${VERSION} (Node ${version.slice(1)}, ${platform} ${arch})\n`;
}
