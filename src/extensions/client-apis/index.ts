// The setting that says in which formats clients may ask, beside chat completions. A library for
// the extensions that serve such a format, which is where the formats themselves are.
import type { ConfigExtension } from "../../config/extension.ts";
import { defineSetting } from "../../config/setting.ts";
import type { Config } from "../../core/config.ts";
import { array, literal, withDefault, type Infer } from "../../core/schema/checker.ts";

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

/** `messages`: Anthropic's Messages API. `responses`: OpenAI's Responses API. */
const apiName = literal("messages", "responses");
export type ApiName = Infer<typeof apiName>;

/** Absent: none. Their paths are then unknown. */
const apis = defineSetting<readonly ApiName[]>("apis", [], () => withDefault(array(apiName), []), {
  fixed: true,
});

/** Whether a configuration switches this API on. */
export const apiEnabled = (config: Config, name: ApiName): boolean =>
  apis.of(config).includes(name);

export const extension: ConfigExtension = { name: "client-apis", settings: [apis] };
