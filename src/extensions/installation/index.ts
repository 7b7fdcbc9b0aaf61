// What exists once, however many processes serve. The admin listener and everything that it shows
// stand on this.
import type { Extension } from "../../core/extension/extension.ts";
import { createHost } from "./host.ts";

export type { Host, HostExtension, HostPart, Look, ModelStatus, Status } from "./contracts.ts";

export const extension: Extension = { name: "installation", createHost };
