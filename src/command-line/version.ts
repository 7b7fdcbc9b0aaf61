// What `--version` prints.
import { VERSION } from "../core/version.ts";

/**
 * What `--version` prints: the program, and what it runs on. To import node:process opens standard
 * input, which takes milliseconds, so only this command does.
 */
export async function versionText(): Promise<string> {
  const { arch, platform, version } = await import("node:process");
  return `chat-gateway ${VERSION} (Node ${version.slice(1)}, ${platform} ${arch})\n`;
}
