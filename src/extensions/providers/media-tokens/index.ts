// The tokens of images, audio and files in a prompt, where a provider does not count them.
import type { Extension } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import { mediaTokens } from "./media-tokens.ts";

export const extension: Extension = {
  name: "media-tokens",
  install: (gateway) => gateway.fill(slots.mediaTokens, mediaTokens),
};
