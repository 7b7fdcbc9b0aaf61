// A library for the extensions that serve further client APIs, and the setting that switches them
// on.
import type { ConfigExtension } from "../../../config/extension.ts";
import { apis } from "./settings.ts";

export { authorization } from "./authorization.ts";
export { memberName, type Path } from "./error-paths.ts";
export {
  inputMessage,
  refuseResult,
  requestOf,
  resultOf,
  type Entry,
  type ToolCall,
} from "./messages.ts";
export { apiEnabled, type ApiName } from "./settings.ts";

export const extension: ConfigExtension = {
  name: "client-apis",
  settings: [apis],
  install: () => undefined,
};
