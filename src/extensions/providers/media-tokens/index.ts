// The tokens of images, audio and files in a prompt, where a provider does not count them.
import type { Installer } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import { mediaTokens } from "./media-tokens.ts";

export function install(gateway: Installer): void {
  gateway.fill(slots.mediaTokens, mediaTokens);
}
